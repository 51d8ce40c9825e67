"""Settings of an installation."""
