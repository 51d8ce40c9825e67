"""Landing: rows of a stream into a table, on the platform's Spark, in a process of its own.

reading.py   what a reader is asked and gives, and READERS: a reader for each kind of connection
names.py     columns' names: safe, and unique without case
types.py     types: what texts hold, what a table's column can grow to, and whether a value fits
state.py     where the next run begins
conforming.py  which column is which, and which rows do not fit
files.py     files of every format; csv.py, texts.py and variants.py (JSON), typed.py (Parquet, Avro), xml.py,
             excel.py and workbooks.py for each; sniffing.py: a first look at them
jdbc.py      databases; columns.py, parts.py; postgresql.py and mysql.py know the types of each
api.py       rows of REST APIs; iceberg.py: tables of other catalogs
tables.py    tables: made and grown
writing.py   rows: replaced, appended, merged; rejected rows beside
work.py      all of it, for one `Land` step
"""
