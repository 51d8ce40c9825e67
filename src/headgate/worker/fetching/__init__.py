"""Gets files from outside to the worker, under the rules of all outgoing calls and within a stream's limits.

downloads.py  one file: tried again, gone on with where it broke off, bounded in bytes
packed.py     what is packed: gzip under a name that Spark knows, zip taken apart safely
web.py        a file behind an address
bucket.py     an object store: what it lists, and how a request to it is signed
objects.py    the files of an object store
catalog.py    another Iceberg catalog: what it says of a table
signing.py    who signs the requests for a table's files, and where they may go
tables.py     another catalog's table, as Parquet
"""
