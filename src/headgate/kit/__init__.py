"""What any slice uses and what knows no slice."""
