"""Calls to addresses that members typed, such as webhooks: every resolved address is checked against `outgoing.allow`.

`client.py` sends requests. `network.py` resolves a name once and connects only to the checked addresses. `sockets.py`
does the same for other protocols, and `proxy.py` for processes in a sandbox.
"""
