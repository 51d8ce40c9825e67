"""Notebook runs on the worker: prepare the inputs, hold the processes, validate the outputs, which are untrusted."""
