"""A small company to try Headgate with."""
