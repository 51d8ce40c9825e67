"""The organization's webhook: notices about runs, posted to a URL that an admin set, and signed."""
