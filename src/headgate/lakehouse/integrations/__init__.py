"""Integrations: named permanent consumers, such as BI tools and agents, each with its own narrowed token."""
