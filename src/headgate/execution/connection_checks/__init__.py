"""What a worker finds out about a place: whether it answers, and what is there. One module a kind of place."""
