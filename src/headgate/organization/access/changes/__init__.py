"""Access changes: their requirements, their row changes, and their audit events.

One description of a change is used three times: `apply` makes it, `what_if` asks the rule tables as if it were made,
and the audit log records it.
"""
