"""Commands for resources, the audit log, notifications and keys."""
