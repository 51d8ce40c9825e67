"""Notifications of members."""
