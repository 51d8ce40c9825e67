"""Contexts, which limit what members of selected scope reach."""
