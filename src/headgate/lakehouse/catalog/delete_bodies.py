"""Strict parsing of bulk delete requests, so that no two parsers can find different keys in one body."""

import re
from xml.etree import ElementTree as ET

from headgate.lakehouse.catalog.errors import Forbidden

_MOST_KEYS = 1000
_MOST_CHARACTERS = 2 << 20
_DECLARATION = re.compile(r"\s*<\?xml [^<>]*\?>")
_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def named_keys(body: str) -> list[str]:
    """The keys to delete; Forbidden if the body contains anything else."""
    plain = _DECLARATION.sub("", body, count=1)
    # Reject comments, CDATA, entities and doctypes, because parsers treat them differently.
    if len(body) > _MOST_CHARACTERS or "<!" in plain or "<?" in plain:
        raise _unclear()
    try:
        root = ET.fromstring(plain)  # noqa: S314 - nothing that defines or includes is left in it
    except ET.ParseError:
        raise _unclear() from None
    if _name(root) != "Delete":
        raise _unclear()
    keys = [_key(element) for element in root if _name(element) == "Object"]
    others = [element for element in root if _name(element) != "Object"]
    if not 0 < len(keys) <= _MOST_KEYS or any(_name(other) != "Quiet" or len(other) for other in others):
        raise _unclear()
    return keys


def _key(element: "ET.Element[str]") -> str:
    children = list(element)
    if len(children) != 1 or _name(children[0]) != "Key" or len(children[0]) or element.attrib:
        raise _unclear()
    return children[0].text or ""


def _name(element: "ET.Element[str]") -> str:
    return element.tag.removeprefix(_NAMESPACE)


def _unclear() -> Forbidden:
    return Forbidden("A request to delete several files may contain only their keys")
