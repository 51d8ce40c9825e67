"""Connections: places that pipelines read and write, in the data spaces that govern them."""
