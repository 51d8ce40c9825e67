"""Ingestion: read a stream of a source, and write its rows to a table, on the platform's Spark.

`land.py` runs the step. `readers.py` chooses the reader: `jdbc.py` for PostgreSQL and MySQL, with the dialects in
`postgresql.py` and `mysql.py`; `files.py` for files of all formats; `api.py` for REST APIs; `iceberg.py` for other
catalogs. `conform.py` casts and rejects rows, and `writer.py` writes them. `fetch/` downloads the files.
"""
