"""Sign-in: passwords, links and sessions."""
