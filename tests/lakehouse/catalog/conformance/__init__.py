"""Iceberg's own tests of a catalog, run against an installation of Headgate."""
