"""Deliveries: rows of one snapshot of a table, on their way out.

Databases get a staging table, and then one transaction that moves its rows and writes down that it did. Files are put
aside and come into place whole. Over HTTP, batches are sent at least once, each with a key of its own.
"""
