"""The organization and its members, as all features refer to them."""
