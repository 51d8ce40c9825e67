"""Changes of access: what each needs, which rows it changes, and what it says to the audit log.

One description of a change serves three readers: `apply` makes it, `what_if` asks the rule tables as if it had been
made, and the audit log records it.
"""
