"""External systems: the endpoints of connections and destinations, and their secrets."""
