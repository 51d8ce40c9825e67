"""Tables of the lakehouse, as members see them."""
