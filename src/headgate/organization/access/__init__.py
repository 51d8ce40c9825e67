"""Access questions about the stored organization (decide, explain, who, what, what-if), and access changes."""
