"""Data spaces and what lives in them."""
