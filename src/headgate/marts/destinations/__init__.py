"""Destinations: external systems that deliveries and reports are sent to."""
