"""Rows of a REST API, read inside Spark's Python workers.

These modules travel to the workers by value, where this package may not be installed: they use the standard library
and each other, and in `source.py` pyarrow and pyspark, which are there.

asked.py     what is asked of an API: where, how it is paged, who asks, within which limits
failures.py  what can go wrong, in words, and how the words come back through Spark
wire.py      one request and its answer, through the egress proxy, bounded in size and time
calls.py     a request that is authorized, paced, redirected on its own origin, and tried again
auth.py      who asks: headers, parameters, and tokens that are fetched and renewed
answers.py   where in an answer the rows are, and what it says about the next page
paging.py    one page after the other
source.py    the data source
"""
