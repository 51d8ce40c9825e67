"""Destinations: places that deliveries and reports are sent to."""
