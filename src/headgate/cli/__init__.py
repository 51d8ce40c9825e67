"""The command line. Commands live in the slices; here is what they share."""
