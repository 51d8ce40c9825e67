"""Testing and exporting worlds over HTTP, and the round trip: what is exported passes its own assertions."""

import pytest
import yaml

from headgate.access.worlds import read_world
from headgate.worlds.runner import run_world
from tests.support.company import Company
from tests.support.databases import WORLD

pytestmark = pytest.mark.both_databases

SMALL = "members: {a: {role: admin}, b: {role: business}}\nresources: [{kind: layer, name: gold}]\n"


def test_a_world_is_tested_in_a_database_of_its_own(millrace: Company) -> None:
    world = SMALL + 'checks:\n  - {member: a, action: see, resource: "layer:gold", allowed: true}\n'
    world += '  - {member: b, action: see, resource: "layer:gold", allowed: true}\n'
    before = millrace.rows("SELECT COUNT(*) FROM resources")
    answer = millrace.as_("Adam").post("/api/access/test", {"world": world, "name": "mine.yaml"}).json()
    assert (answer["passed"], answer["failed"]) == (1, 1)
    assert answer["failures"][0]["line"] == 5
    assert "missing" in answer["failures"][0]["explanation"][0]
    assert millrace.rows("SELECT COUNT(*) FROM resources") == before


def test_a_malformed_world_names_file_line_and_key(millrace: Company) -> None:
    world = SMALL + "checks:\n  - {member: zed, action: see, resource: organization, allowed: true}\n"
    answer = millrace.as_("Adam").post("/api/access/test", {"world": world, "name": "mine.yaml"})
    assert answer.status_code == 422
    body = answer.json()
    assert (body["line"], body["key"]) == (4, "checks[0].member")
    assert body["detail"].startswith("mine.yaml:4: checks[0].member: ")


def test_a_world_cannot_blow_up_the_server(millrace: Company) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8)
    )
    for world in (bomb, "[" * 10_000, "? " * 1000, "a: &a [*a]", "!!python/object/apply:os.system [id]", "\0", "%"):
        answer = millrace.as_("Adam").post("/api/access/test", {"world": world})
        assert answer.status_code == 422, (world[:30], answer.text[:200])


def test_only_admins_test_and_export(millrace: Company) -> None:
    for who in ("Tess", "Ben", "Dora"):
        assert millrace.as_(who).post("/api/access/test", {"world": SMALL}).status_code == 403
        assert millrace.as_(who).get("/api/access/export").status_code == 403


def test_what_is_exported_is_a_world_that_passes(millrace: Company) -> None:
    text = millrace.as_("Olga").get("/api/access/export").text
    results = run_world(read_world(text, "export.yaml"))
    assert len(results) > 100
    assert [one.text for one in results if not one.passed] == []


def test_the_export_says_what_the_company_is(millrace: Company) -> None:
    exported = yaml.safe_load(millrace.as_("Olga").get("/api/access/export").text)
    original = yaml.safe_load(WORLD.read_text(encoding="utf-8"))
    assert exported["groups"] == {name: sorted(members) for name, members in original["groups"].items()}
    assert exported["members"].keys() == original["members"].keys()
    kinds = {one["kind"] for one in original["resources"]} - {"saved_query"}
    assert {one["kind"] for one in exported["resources"]} == kinds

    def plain(one: dict[str, object]) -> dict[str, object]:
        return {k: sorted(v) if isinstance(v, list) else v for k, v in one.items() if v not in ([], False)}

    by_name = {(one["kind"], one["name"]): plain(one) for one in exported["resources"]}
    for one in original["resources"]:
        if one["kind"] != "saved_query":
            assert by_name[one["kind"], one["name"]] == plain(one)
    assert sorted(map(str, exported["grants"])) == sorted(map(str, original["grants"]))
