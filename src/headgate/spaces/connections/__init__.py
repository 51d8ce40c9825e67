"""Connections to external systems that pipelines read and write, in the data spaces that govern them."""
