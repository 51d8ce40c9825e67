"""Resumable uploads to volumes."""
