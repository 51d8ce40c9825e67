"""Connection checks: short questions about a connection or destination that a worker answers."""
