"""Data spaces, and the connections in them."""
