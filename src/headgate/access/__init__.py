"""The access model: rule tables, and everything that is read from them. Pure: no I/O, no framework.

facts.py       what a decision is about: the member, and the resource with what it hangs on
conditions.py  the language of conditions, each of which can be checked in memory and written as SQL
kinds.py       the kinds of resources, their tables and how they hang together
rules/         the rule tables themselves
book.py        all rule tables together, with their readers
"""
