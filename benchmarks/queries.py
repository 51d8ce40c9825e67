"""What does a query pipeline cost over the same SQL in plain Spark?"""

import statistics

from benchmarks.harness import Table, save
from benchmarks.history import Pipeline
from benchmarks.lake import ROWS, contenders, pairs, told

SQL = "SELECT id, shop, amount, amount * 1.2 AS gross, concat('order ', id) AS name FROM raw.big"
SMALL = "SELECT id, id * 2 AS twice FROM raw.small"


def main() -> None:
    """Measure a large and a small one in turns, print and keep."""
    tables: list[Table] = []
    with contenders() as (governed, bare):
        for what, name, sql in ((f"{ROWS:,}", "large", SQL), ("100", "little", SMALL)):
            pipeline = Pipeline(governed, {"kind": "query", "sql": sql, "output": f"raw.{name}"})
            by_hand = f"CREATE OR REPLACE TABLE own.raw.{name} AS {sql}"
            ours, theirs = pairs(pipeline.run, lambda by_hand=by_hand: bare.run(by_hand))
            over = statistics.median(one - other * 1.05 for one, other in zip(ours, theirs, strict=True))
            note = f"over plain Spark and 5 %: {over:.2f} s at the median"
            question = f"A query pipeline that reads and writes {what} rows, from request to publish"
            tables.append(told(question, "at most 5 % and 1 s more", ours, theirs, "plain Spark Connect", notes=[note]))
    save("queries", tables)


if __name__ == "__main__":
    main()
