"""Commands for destinations."""
