"""Probes: Spark analyses a pipeline's SQL under a token that records the tables it loads.

The last transaction of a probe saves the pipeline. If a table does not exist, the pipeline is saved as unresolved and
cannot start until it is saved again. An output that no run has written yet, but whose columns are known, appears to the
probe as an empty table. So a chain of pipelines can be saved before any of them has run.
"""

from dataclasses import asdict

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines import definitions
from headgate.kit.errors import Problem
from headgate.lakehouse.catalog.declared_tables import ANALYSED, COLUMNS, OWN
from headgate.lakehouse.catalog.models import work_load_table, work_token_table
from headgate.lakehouse.items.service import full_name
from headgate.lakehouse.sql import service as workbench
from headgate.lakehouse.sql.saves import NotSaved
from headgate.organization.tokens import service as tokens
from headgate.organization.tokens.models import token_table
from headgate.pipelines import deferred_checks, expected_columns
from headgate.pipelines.save import Analysed, PipelineDraft, save
from headgate.platform.unit_of_work.call import Call, Caller

PIPELINE = "pipeline"
_loads, _works = work_load_table.c, work_token_table.c


def submit(call: Call, draft: PipelineDraft, sql: list[str], fields: expected_columns.Fields | None = None) -> str:
    """Submit a probe that analyses the SQL of a draft and then saves the draft; returns the statement id.

    `fields` are the columns of the output, if they are known without Spark.
    """
    first, *more = sql
    wanted = {**asdict(draft), "definition": draft.definition.model_dump(mode="json")}
    is_query = isinstance(draft.definition, definitions.Query)
    windowed = isinstance(draft.definition, definitions.Query) and draft.definition.write == "window"
    told = {"tells": is_query, "windowed": windowed, OWN: expected_columns.output(draft.definition)}
    save = {PIPELINE: wanted, "more": more, **told, ANALYSED: {COLUMNS: fields}}
    return workbench.submit(call, first, None, save=save)


def save_probed(call: Call, row: RowMapping, tables: list[str], missing: str | None) -> str:
    """Save the probed pipeline as its author and return its id; raises NotSaved with the reason."""
    wanted = dict(row["save"][PIPELINE])
    analysed = row["save"].get(ANALYSED) or {}
    if analysed.get("problem"):
        raise NotSaved(analysed["problem"])
    draft = PipelineDraft(**{**wanted, "definition": definitions.parse(wanted["definition"])})
    connection = call.connection
    call = Call(connection, call.now, _author(connection, row), call.services)
    own = definitions.outputs(draft.definition)
    loaded = _loaded(connection, row["id"])
    if missing and deferred_checks.is_of_own(
        connection, draft.definition, (value for value, id_ in loaded.items() if not id_)
    ):
        missing = None
    known = Analysed(analysed.get(COLUMNS), analysed.get("origins") or (), loaded)
    try:
        return save(call, draft, _reads(connection, tables, own), missing, known)
    except Problem as error:
        raise NotSaved(error.detail or error.title, call.recorded.denials) from None


def _loaded(connection: Connection, statement: str) -> dict[str, str | None]:
    """The names and ids of the tables that a probe loaded."""
    joined = work_load_table.join(work_token_table, _works.id == _loads.work_id)
    query = select(_loads.ref, _loads.table_id).select_from(joined).where(_works.statement_id == statement)
    return {row.ref: row.table_id for row in connection.execute(query.order_by(_works.id))}


def _reads(connection: Connection, tables: list[str], own: dict[str, bool]) -> list[str]:
    names = (full_name(connection, table).lower() for table in tables)
    return [name for name in names if name not in own]


def _author(connection: Connection, row: RowMapping) -> Caller:
    """The member who requested the save, limited by the scope of the token they used."""
    member, token = row["member_id"], row["token_id"]
    if token is None:
        return Caller(member)
    result = connection.execute(select(token_table).where(token_table.c.id == token)).mappings().one()
    limits = tokens.narrowing(
        connection, token, read_only=result["read_only"], listed=result["listed"], expires=result["expires_at"]
    )
    return Caller(member, token, limits)
