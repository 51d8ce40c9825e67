"""Deliveries: send the rows of one table snapshot to an external system. Databases get a staging table, and one
transaction moves its rows and records the delivery. Files are staged and then renamed. HTTP receivers get batches at
least once, each with an idempotency key.
"""
