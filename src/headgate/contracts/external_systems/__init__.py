"""What connections and destinations point at, by kind."""
