"""Finding out what a pipeline's SQL reads: a probe analyses it on Spark under a token that records what is loaded.

The probe's last transaction saves the pipeline. A table that does not exist leaves it unresolved: saved, but unable to
start until it is saved again.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from headgate.edge.call import Call, Caller
from headgate.edge.services import Services
from headgate.errors import Problem
from headgate.lakehouse.service import full_name
from headgate.pipelines import definitions
from headgate.pipelines.saving import Draft, save
from headgate.tokens import service as tokens
from headgate.tokens.models import token_table
from headgate.workbench import service as workbench
from headgate.workbench.saving import NotSaved

PIPELINE = "pipeline"


def needs_probe(definition: Any) -> bool:
    """Whether only Spark can tell what it reads."""
    return bool(definitions.probed_sql(definition))


def submit(call: Call, draft: Draft) -> str:
    """Have the SQL of a draft analysed, and the draft saved then; the id of the statement that does it."""
    first, *more = definitions.probed_sql(draft.definition)
    wanted = {**asdict(draft), "definition": draft.definition.model_dump(mode="json")}
    return workbench.submit(call, first, None, save={PIPELINE: wanted, "more": more})


def save_probed(
    services: Services, connection: Connection, now: datetime, row: RowMapping, tables: list[str], missing: str | None
) -> str:
    """Save the pipeline that a probe was for, as its author; its id. NotSaved says why not."""
    wanted = dict(row["save"][PIPELINE])
    draft = Draft(**{**wanted, "definition": definitions.parse(wanted["definition"])})
    call = Call(connection, now, _author(connection, row), services)
    own = definitions.outputs(draft.definition)
    try:
        return save(call, draft, _reads(connection, tables, own), missing)
    except Problem as error:
        raise NotSaved(error.detail or error.title) from None


def _reads(connection: Connection, tables: list[str], own: dict[str, bool]) -> list[str]:
    names = (full_name(connection, table).lower() for table in tables)
    return [name for name in names if name not in own]


def _author(connection: Connection, row: RowMapping) -> Caller:
    """Who asked for the save, within the limits of the token by which they did."""
    member, token = row["member_id"], row["token_id"]
    if token is None:
        return Caller(member)
    found = connection.execute(select(token_table).where(token_table.c.id == token)).mappings().one()
    limits = tokens.narrowing(
        connection, token, read_only=found["read_only"], listed=found["listed"], expires=found["expires_at"]
    )
    return Caller(member, token, limits)
