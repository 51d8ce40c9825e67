"""Steps as a run executes them, one after the other, each published at its end."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from headgate.contracts.pipelines.definitions import History, Query
from headgate.contracts.pipelines.expectations import Expectation
from headgate.contracts.pipelines.steps import Check, KeepHistory, Refine
from headgate.execution.steps import check, history, refine
from headgate.execution.steps.context import CheckResult, Result
from tests.support.steps import Running, Workshop


class Bench:
    """Runs steps, and remembers where each table's last published run ended."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.states: dict[str, Any] = {}
        self.last: Running

    def refine(self, sql: str, output: str, *, moment: datetime | None = None, **more: Any) -> Result:
        """Run a query into a table, and publish it."""
        run = {name: more.pop(name) for name in ("reads", "full_refresh", "time_zone") if name in more}
        running = self._run(output, moment, **run)
        step = Refine(Query(sql=sql, output=output, **more), self.shop.item(output))
        return self._published(running, output, refine.run(step, running.context))

    def keep(self, source: str, output: str, *, full_refresh: bool = False, **more: Any) -> Result:
        """Keep a history, and publish it."""
        running = self._run(output, None, reads=(source,), full_refresh=full_refresh)
        definition = History(table=source, output=output, **more)
        step = KeepHistory(definition, self.shop.item(source), self.shop.item(output))
        return self._published(running, output, history.run(step, running.context))

    def check(self, table: str, *, moment: datetime | None = None, **more: Any) -> CheckResult:
        """Check an expectation."""
        other = more.get("other")
        running = self._run(table, moment, reads=(other,) if other else ())
        item = self.shop.item(other) if other else None
        found = check.run(Check(Expectation(table=table, **more), self.shop.item(table), item), running.context)
        assert found.check is not None
        return found.check

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement gives for Tess."""
        return [tuple(row.values()) for row in self.shop.rows(sql)]

    def _run(self, output: str, moment: datetime | None, **more: Any) -> Running:
        running = self.shop.run(output, states=self.states, **more)
        if moment is not None:
            running.context.job = replace(running.context.job, moment=moment)
        self.last = running
        return running

    def _published(self, running: Running, output: str, result: Result) -> Result:
        item = self.shop.item(output)
        running.publish()
        self.states[item.id] = result.state
        return result
