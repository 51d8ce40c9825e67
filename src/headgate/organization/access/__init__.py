"""Asks the rule tables about the stored organization: decide, explain, who, what, what if; and changes access."""
