"""Files in volumes."""
