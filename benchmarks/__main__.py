"""Runs the benchmarks that are named, or all."""

import importlib
import sys

NAMES = (
    "start",
    "check_in_memory",
    "check_product",
    "requests",
    "sign_in",
    "lists",
    "catalog",
    "namespaces",
    "writers",
    "lake",
    "history",
    "landing",
    "queries",
    "draining",
    "scheduler",
)


def main() -> None:
    """Run them one after the other."""
    for name in sys.argv[1:] or NAMES:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
