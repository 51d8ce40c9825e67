"""The location of the Spark guard's files: the sources in a checkout, the jar in a wheel."""

from pathlib import Path

SOURCES = Path(__file__).parents[3] / "spark-guard" / "src" / "main"
SHIPPED = Path(__file__).parents[1] / "execution" / "spark" / "headgate-guard.jar"
"""The jar's location in a wheel; `make guard` creates it."""
