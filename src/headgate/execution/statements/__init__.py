"""The SQL that steps run: pure functions from definitions and columns to texts. Names and values in them are quoted."""
