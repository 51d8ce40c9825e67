"""What layers, tables and volumes have in common."""
