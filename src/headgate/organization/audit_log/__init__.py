"""The audit log as shown to members."""
