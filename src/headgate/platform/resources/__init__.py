"""Shared parts of all kinds of resources: names, owners, lists."""
