"""Tables of the lakehouse, as shown to members."""
