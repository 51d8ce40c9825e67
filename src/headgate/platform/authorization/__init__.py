"""The access model applied to the stored organization."""
