"""Runs of pipelines."""
