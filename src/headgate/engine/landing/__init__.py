"""Landing: rows of a stream into a table, on the platform's Spark, in a process of its own.

reading.py   what a reader is asked and gives, and READERS: a reader for each kind of connection
names.py     columns' names: safe, and unique without case
types.py     types: what texts hold, what a table's column can grow to, and whether a value fits
files.py     files of every format; csv.py, texts.py (JSON), excel.py and typed.py (Parquet, Avro) for each
jdbc.py      databases; postgresql.py and mysql.py know the types of each
api.py       rows of REST APIs; iceberg.py: tables of other catalogs
writing.py   tables: made, grown, replaced, appended to, merged into; rejected rows beside
work.py      all of it, for one `Land` step
"""
