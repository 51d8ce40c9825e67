"""Random statements whose depth is known, because it is written down while they are made."""

from random import Random

_NOISE = (
    " ", "\n", "\r", "\t", " --((\n", " --([\r", " --((\r\n", " --(\\\n((\n", "/**/", "/* ((CASE */", "/*( /* [ */ ' */", "/*(-- */",
    "/***/", "/*/*/ ) */*/", "/* '(*/",
)  # fmt: skip
_VALUES = (
    "1", "a", "'(('", '"(("', r"r'\'", 'R"(\\"', "'it''s ('", r"'a\'('", "`(``[`", "'--('", "'/*('", "'a' '('", "t.end", "X'00'",
    "1.5e3", "'\n('", r"'\\'", '"a""("', "r'('", ":p", "NULL", "current_date",
)  # fmt: skip
_TYPES = ("INT", "STRING", "DECIMAL(9,2)")


def comment(levels: int) -> str:
    """A comment inside comments."""
    return "/* ( " * levels + " */" * levels


class Nested:
    """A query, and how deep it is nested."""

    def __init__(self, random: Random) -> None:
        self._random = random
        text, self.depth = self._expression(random.randint(1, 7))
        self.sql = f"SELECT{self._noise()}{self._hint()}{text} AS x"
        self.depth = max(self.depth, 1 if "/*+" in self.sql else 0)

    def _noise(self) -> str:
        return "".join([" ", *self._random.choices(_NOISE, k=self._random.randint(0, 2)), " "])

    def _hint(self) -> str:
        return self._random.choice(["", "", "/*+ REPARTITION(3) */", "/*+ BROADCAST(a), MERGE(b) */"])

    def _expression(self, levels: int) -> tuple[str, int]:
        if levels == 0:
            return self._random.choice(_VALUES), 0
        kinds = (
            self._brackets,
            self._call,
            self._case,
            self._index,
            self._cast,
            self._lambda,
            self._prefix,
            self._query,
        )
        return self._random.choice(kinds)(levels)

    def _inner(self, levels: int) -> tuple[str, int]:
        text, depth = self._expression(self._random.randint(0, levels - 1))
        return f"{self._noise()}{text}{self._noise()}", depth

    def _brackets(self, levels: int) -> tuple[str, int]:
        text, depth = self._inner(levels)
        return f"({text})", depth + 1

    def _call(self, levels: int) -> tuple[str, int]:
        (left, one), (right, two) = self._inner(levels), self._inner(levels)
        return f"concat({left},{right})", max(one, two) + 1

    def _case(self, levels: int) -> tuple[str, int]:
        (when, one), (then, two), (other, three) = (self._inner(levels) for _ in range(3))
        start = self._random.choice(["CASE WHEN", "case END when", "CASE t.case WHEN", "CASE WHEN end >= end AND"])
        return f"{start} {when} THEN {then} ELSE {other} END", max(one, two, three) + 1

    def _index(self, levels: int) -> tuple[str, int]:
        text, depth = self._inner(levels)
        return f"a[{text}]", depth + 1

    def _cast(self, levels: int) -> tuple[str, int]:
        text, depth = self._inner(levels)
        kind, inside = self._type(self._random.randint(0, 3))
        return f"CAST({text} AS {kind})", max(depth, inside) + 1

    def _type(self, levels: int) -> tuple[str, int]:
        if levels == 0:
            kind = self._random.choice(_TYPES)
            return kind, int("(" in kind)
        kind, depth = self._type(levels - 1)
        form = self._random.choice(["ARRAY<{}>", "STRUCT<a: {}>", "MAP<INT,{}>", "array <{} >", "struct<`<`: {}>"])
        return form.format(kind), depth + 1

    def _lambda(self, levels: int) -> tuple[str, int]:
        text, depth = self._inner(levels)
        names = self._random.choice(["x", "(x, y)"])
        # The brackets of the function, the arrow, and what follows it.
        return f"transform(a, {names} -> {text})", max(depth + 2, 1 + int("(" in names))

    def _prefix(self, levels: int) -> tuple[str, int]:
        text, depth = self._brackets(levels)
        signs = self._random.choices(["-", "~", "+"], k=self._random.randint(1, 4))
        return f"{' '.join(signs)} {text}", max(len(signs), depth)

    def _query(self, levels: int) -> tuple[str, int]:
        text, depth = self._inner(levels)
        return f"(SELECT {text} FROM t AS u)", depth + 1
