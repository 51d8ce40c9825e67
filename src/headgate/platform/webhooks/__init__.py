"""The organization's webhook: signed notices about runs, posted to a URL set by an admin."""
