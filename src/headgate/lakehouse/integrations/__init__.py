"""Integrations: named standing consumers, such as BI tools and agents, each with a narrowed token of its own."""
