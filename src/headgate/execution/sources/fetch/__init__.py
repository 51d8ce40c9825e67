"""Downloads from external systems to the worker, under the rules for outgoing calls and the limits of the stream.

`external.py` chooses what a stream needs: a file behind a URL (`web.py`), files of an object store (`objects.py`), or
the data files of another Iceberg catalog (`catalog.py`, `scans.py`, `tables.py`).
"""
