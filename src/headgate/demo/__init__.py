"""A sample company to try Headgate with."""
