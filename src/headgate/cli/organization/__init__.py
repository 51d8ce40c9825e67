"""Commands for members, groups, contexts, sign-in, tokens and access."""
