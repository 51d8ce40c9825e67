"""Headgate: a self-hosted, governed data platform."""

__version__ = "0.1.0"
