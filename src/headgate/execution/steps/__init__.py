"""Executors of steps: one module per kind, each with a function of the step and its context."""
