"""Triggers of pipelines: schedules, successful runs of other pipelines, and table changes."""
