"""Commands on resources, the audit log, notifications and keys."""
