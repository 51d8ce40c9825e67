"""Commands for data spaces and connections."""
