"""Writes the generated reference pages, or with --check says which are stale: `make docs`, `make lint`."""

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from typer.main import get_command

from headgate.access.actions import DESCRIPTIONS
from headgate.access.book import BOOK
from headgate.app import create_app
from headgate.cli.main import app as command_line
from headgate.execution.spark import guard_jar
from headgate.settings.settings import PREFIX, Settings, described

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Written by `make docs`; do not edit. -->\n"


def settings_page() -> str:
    """Every setting, with its variable, default and meaning."""
    lines = [
        "# Settings\n",
        NOTE,
        "Settings come from the environment, then from `headgate.toml` in the working directory (or the file that",
        f"`{PREFIX}CONFIG` names), then from these defaults. `headgate config show` prints what is in force.\n",
        "| setting | variable | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, field, _ in described(Settings):
        variable = PREFIX + name.upper().replace(".", "__")
        default = "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{name}` | `{variable}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


def permissions_page() -> str:
    """Every rule table, and the meaning of every action."""
    lines = [
        "# Permissions\n",
        NOTE,
        "Each kind of resource has one table of paths. Whoever meets a path's condition has the actions it grants;",
        "paths only add. These are the very tables that Headgate decides by. What is *in italics* is no action, but a",
        "part of other conditions.\n",
    ]
    for rules in BOOK.tables.values():
        lines += [f"## {rules.title}\n", "| path | condition | grants |", "|---|---|---|"]
        for path in rules.paths:
            grants = ", ".join(f"*{one}*" if one in rules.internal else f"`{one}`" for one in path.grants)
            lines.append(f"| {path.name} | {path.condition.words(rules.kind)} | {grants} |")
        lines.append("")
    lines += ["## Actions\n", "| action | meaning |", "|---|---|"]
    lines += [f"| `{action}` | {meaning} |" for action, meaning in sorted(DESCRIPTIONS.items())]
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """The help of every command, as the command line prints it."""
    parts = ["# Commands\n", NOTE]
    for words, text in commands():
        parts.append(f"## `{' '.join(words)}`\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def commands() -> Iterator[tuple[tuple[str, ...], str]]:
    """The words of every command, and its help."""
    yield from _helps(get_command(command_line), ("headgate",), None)


def _helps(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    context = command.context_class(
        command, info_name=words[-1], parent=parent, terminal_width=78, **command.context_settings
    )
    yield words, command.get_help(context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, (*words, name), context)


STATEMENTS = (
    "Read: `SELECT` with all its clauses, `WITH`, `WITH RECURSIVE`, `VALUES`, `TABLE`, and pipes (`|>`).",
    "Read as it was: `VERSION AS OF` a snapshot, a branch or a tag, and `TIMESTAMP AS OF` a time.",
    "Change rows: `INSERT INTO`, `INSERT OVERWRITE`, `UPDATE`, `DELETE`, `MERGE INTO`, `TRUNCATE TABLE`.",
    "Make and drop: `CREATE TABLE`, `CREATE OR REPLACE TABLE`, both also `AS SELECT`; `DROP TABLE` without `PURGE`;"
    " `CREATE NAMESPACE`, `DROP NAMESPACE` without `CASCADE`.",
    "Change tables: `ALTER TABLE` for columns, properties, partition fields, the order of writing, identifier fields,"
    " branches and tags; `RENAME TO`; `COMMENT ON TABLE`.",
    "Views: `CREATE VIEW`, `CREATE OR REPLACE VIEW`, `DROP VIEW`, `ALTER VIEW` with `RENAME TO`, `SET TBLPROPERTIES`"
    " and `UNSET TBLPROPERTIES`.",
    "Look: `SHOW NAMESPACES`, `SHOW TABLES`, `SHOW VIEWS`, `SHOW COLUMNS`, `SHOW CREATE TABLE`, `SHOW TBLPROPERTIES`,"
    " `DESCRIBE TABLE`, also `EXTENDED`, `DESCRIBE QUERY`, `DESCRIBE FUNCTION`, `EXPLAIN`.",
    "Set, before one of these in the same text: `SET TIME ZONE 'Europe/Madrid';` and `USE layer;`.",
    "Go back: `CALL` with a procedure of those below.",
)


def sql_page() -> str:
    """What members may write in SQL, from the very lists that the guard inside Spark decides by."""
    functions = _listed("functions")
    operators = [one for one in functions if not one[0].isalpha()]
    of_iceberg = [one for one in functions if one.startswith("lake.")]
    built_in = [one for one in functions if one not in operators and one not in of_iceberg]
    calls = [line.split() for line in _listed("procedures")]
    lines = [
        "# SQL\n",
        NOTE,
        "What a statement may hold. Whatever is not here is refused, with a sentence that says what to use instead.",
        "What a statement may read and change is another matter: see [permissions](permissions.md).\n",
        "The language is Spark's. Tables are named `layer.table` or `lake.layer.table`, with letters, digits and",
        "underscores. There are no variables, no other settings, no temporary views and no functions of your own.\n",
        "## Statements\n",
        *(f"* {one}" for one in STATEMENTS),
        "\n## Operators\n",
        _words(operators),
        "\n## Functions\n",
        *_by_letter(built_in),
        "\nOf Iceberg: " + _words(of_iceberg),
        "\n## Table properties\n",
        "Members may set, unset and show these. A name that ends in `*` stands for all that start so.\n",
        *(f"* `{one}`" for one in _listed("properties")),
        "\n## Metadata tables\n",
        "Read them as `layer.table.NAME`.\n",
        *(f"* `{one}`" for one in _listed("metadata-tables")),
        "\n## Procedures\n",
        *(f"* `CALL lake.system.{name}({', '.join(arguments)})`" for name, *arguments in calls),
    ]
    return "\n".join(lines) + "\n"


def _listed(name: str) -> list[str]:
    """The lines of one of the guard's lists, without remarks."""
    text = (guard_jar.SOURCES / "resources" / "headgate" / "guard" / f"{name}.txt").read_text()
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _words(names: list[str]) -> str:
    return " ".join(f"`{one}`" for one in names)


def _by_letter(names: list[str]) -> list[str]:
    """One row for each first letter: some hundreds of names that stay readable."""
    rows = [f"| **{letter}** | {_words(list(group))} |" for letter, group in groupby(sorted(names), lambda one: one[0])]
    return ["| | |", "|---|---|", *rows]


def openapi_page() -> str:
    """The OpenAPI document."""
    app = create_app(Settings(database={"url": "sqlite://"}))
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


PAGES = {
    "docs/reference/settings.md": settings_page,
    "docs/reference/permissions.md": permissions_page,
    "docs/reference/commands.md": commands_page,
    "docs/reference/sql.md": sql_page,
    "docs/reference/openapi.json": openapi_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them."""
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / name, make()
        if "--check" in arguments:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"{name} is stale; run `make docs`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
