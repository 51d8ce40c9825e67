"""Where the files of the Spark guard are: its sources in a checkout, its jar in a wheel."""

from pathlib import Path

SOURCES = Path(__file__).parents[3] / "spark-guard" / "src" / "main"
SHIPPED = Path(__file__).parents[1] / "execution" / "spark" / "headgate-guard.jar"
"""Where a wheel has the jar; `make guard` puts it there."""
