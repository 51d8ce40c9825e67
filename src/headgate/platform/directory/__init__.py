"""The organization and its members, as every feature refers to them."""
