"""Tests of the repository itself: generated pages, the map, dependencies, prose."""
