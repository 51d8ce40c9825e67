"""Storages, data marts, destinations and reports."""
