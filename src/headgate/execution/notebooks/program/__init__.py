"""Runs the cells of a notebook, inside its sandbox. It knows nothing of the rest of Headgate, and nothing trusts it."""
