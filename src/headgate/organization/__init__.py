"""Members, groups, contexts, sign-in and access of the organization."""
