"""Commands on data spaces and connections."""
