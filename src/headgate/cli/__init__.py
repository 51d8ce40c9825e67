"""The command-line interface: the root command, shared helpers, and the commands of each package."""
