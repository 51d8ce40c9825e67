"""A notebook may save files alone, without a table: whoever may write the volume adds it."""

from headgate.kit.ids import new_id
from tests.support.company import Company

DEFINITION = {"kind": "notebook", "cells": [{"source": "1"}], "output_volumes": ["raw.invoices"]}


def test_whoever_may_write_the_volume_adds_it(millrace: Company) -> None:
    for member, status in (("Adam", 200), ("Tess", 200), ("Ana", 403)):
        body = {"name": new_id("pipeline"), "definition": DEFINITION}
        answer = millrace.as_(member).post("/api/pipelines", body)
        assert answer.status_code == status, (member, answer.text)
