"""Connection checks: test an external system and discover its tables or files. One module per kind of system."""
