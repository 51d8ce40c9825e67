"""Places outside: what connections and destinations point at, and the secrets for them."""
