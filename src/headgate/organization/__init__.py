"""Members, groups, contexts, sign-in and access."""
