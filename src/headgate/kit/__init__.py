"""Helpers that every package uses and that know none of them."""
