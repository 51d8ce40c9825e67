"""A search for escalations: sequences of allowed acts that end with a right that nobody gave.

`organization` is a small organization behind the real application; `acts` are what people do in it, over HTTP;
`knowledge` is who knows which credential, and what that entitles to; `search` tries random sequences, and shortens one
that breaks the rule.
"""
