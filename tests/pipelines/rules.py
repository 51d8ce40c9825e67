"""The cases that prove sentences of the access model, and how a case is entered."""

from collections.abc import Callable

from tests.pipelines.pipeline_company import PipelineCompany

Case = Callable[[PipelineCompany], None]
RULES: list[tuple[str, Case]] = []


def rule(sentence: str) -> Callable[[Case], Case]:
    """A case that proves a sentence of the access model."""

    def enter(case: Case) -> Case:
        RULES.append((sentence, case))
        return case

    return enter


GRAIN, BREAD = "table:land.grain", "table:mill.bread"
