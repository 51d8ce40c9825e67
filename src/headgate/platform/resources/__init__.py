"""What all kinds of resources share: names, owners, lists."""
