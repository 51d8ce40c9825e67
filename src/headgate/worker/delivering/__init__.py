"""Deliveries: rows of one snapshot of a table, on their way out.

A database gets a staging table, and then one transaction that moves its rows and writes down that it did.
"""
