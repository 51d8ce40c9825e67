"""Commands on members, groups, contexts, sign-in, tokens and access."""
