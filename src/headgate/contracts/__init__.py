"""Typed messages between the server and its workers."""
