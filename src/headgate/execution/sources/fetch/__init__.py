"""Gets files from outside to the worker, under the rules of all outgoing calls and within a stream's limits.

who.py        a connection's settings and secrets, as requests show them
downloads.py  one file: tried again, gone on with where it broke off, bounded in bytes
packed.py     what is packed: gzip under a name that Spark knows, zip taken apart safely
web.py        a file behind an address
bucket.py     an object store: what it lists, and how a request to it is signed
objects.py    the files of an object store
catalog.py    another Iceberg catalog: what it says of a table, and who signs the requests for its files
scans.py      which files of such a table are read, and since when
tables.py     such a table, as Parquet on this machine
outside.py    what a stream needs on the worker before its rows are read
"""
