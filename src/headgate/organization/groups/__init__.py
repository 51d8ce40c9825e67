"""Groups of members."""
