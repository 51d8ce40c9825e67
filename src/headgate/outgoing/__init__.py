"""Calls to addresses that members typed: webhooks, and whatever else leaves by a URL that somebody gave.

errors.py     what can go wrong, in words for whoever typed the address
addresses.py  hosts however they are spelt, which addresses are public, and what `outgoing.allow` lists
urls.py       a URL, taken apart once and strictly
network.py    resolves a name once, judges every address, and connects to none but these, within one deadline
client.py     the client: redirects, limits, headers
sockets.py    the same judgement for other protocols, such as those of databases
"""
