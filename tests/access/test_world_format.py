"""Reading worlds: a slip names file, line, key and remedy; whatever a person may write is understood."""

import pytest

from headgate.access.worlds import read_world
from headgate.access.yaml_nodes import WorldError
from headgate.worlds.runner import run_world

HEAD = "members:\n  ann: {role: technical}\n  bob: {role: business}\nresources:\n  - {kind: layer, name: gold}\n"
CHECK = 'checks:\n  - {member: ann, action: see, resource: "layer:gold", allowed: false}\n'


def refuse(text: str) -> WorldError:
    with pytest.raises(WorldError) as caught:
        read_world(text, "w.yaml")
    assert str(caught.value).startswith("w.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ("", 1, "", "one YAML document"),
        ("a: [", 1, "", "not YAML"),
        ("---\na: 1\n---\nb: 2\n", 1, "", "one YAML document"),
        ("[]", 1, "", "mapping"),
        (CHECK, 1, "", "'members'"),
        ("members: {}\n" + CHECK, 1, "", "'resources'"),
        (HEAD, 1, "", "checks, lists, who_can"),
        (HEAD + CHECK + "colours: []\n", 8, "colours", "not a part of a world"),
        (HEAD + CHECK + "checks: []\n", 8, "", "appears twice"),
        (HEAD.replace("technical", "wizard") + CHECK, 2, "members.ann.role", "owner, admin"),
        (HEAD.replace("{role: technical}", "{}") + CHECK, 2, "members.ann", "needs a role"),
        (HEAD.replace("{role: technical}", "{role: technical, age: 7}") + CHECK, 2, "members.ann.age", "not known here"),
        (HEAD.replace("  bob:", "  ANN:") + CHECK, 3, "members.ANN", "already a member"),
        (HEAD.replace("bob:", '"a\\tb":') + CHECK, 3, "members.a\tb", "control characters"),
        (HEAD + "now: yesterday\n" + CHECK, 6, "now", "not a date or time"),
        (HEAD + "organization: {plan: platinum}\n" + CHECK, 6, "organization.plan", "starter"),
        (HEAD + "groups: {All: [ann]}\n" + CHECK, 6, "groups.All", "exists by itself"),
        (HEAD + "groups: {g: [zed]}\n" + CHECK, 6, "groups.g[0]", "no member called 'zed'"),
        (HEAD + "  - {kind: castle, name: x}\n" + CHECK, 6, "resources[1].kind", "'castle'"),
        (HEAD + "  - {kind: storage}\n" + CHECK, 6, "resources[1]", "a kind and a name"),
        (HEAD + "  - {kind: storage, name: x, colour: red}\n" + CHECK, 6, "resources[1].colour", "has no 'colour'"),
        (HEAD + "  - {kind: storage, name: x, owners: ann}\n" + CHECK, 6, "resources[1].owners", "a list"),
        (HEAD + "  - {kind: storage, name: x, owners: [zed]}\n" + CHECK, 6, "resources[1].owners[0]", "zed"),
        (HEAD + "  - {kind: storage, name: x, shared_for_use: maybe}\n" + CHECK, 6, "resources[1].shared_for_use", "neither"),
        (HEAD + "  - {kind: report, name: x}\n" + CHECK, 6, "resources[1]", "needs 'data_mart'"),
        (HEAD + "  - {kind: run, name: x}\n" + CHECK, 6, "resources[1]", "exactly one of"),
        (HEAD + "  - {kind: table, name: orders}\n" + CHECK, 6, "resources[1].name", "has no layer"),
        (HEAD + "  - {kind: table, name: gold.a-b}\n" + CHECK, 6, "resources[1].name", "SQL name"),
        (HEAD + "  - {kind: layer, name: system}\n" + CHECK, 6, "resources[1].name", "reserved"),
        (HEAD + "  - {kind: layer, name: GOLD}\n" + CHECK, 6, "resources[1].name", "already a layer"),
        (
            HEAD + "  - {kind: table, name: gold.x}\n  - {kind: volume, name: gold.x}\n" + CHECK,
            7,
            "resources[2].name",
            "share names",
        ),
        (HEAD + "grants: [{to: zed, resource: layer:gold, level: viewer}]\n" + CHECK, 6, "grants[0].to", "zed"),
        (HEAD + "grants: [{to: ann, resource: layer:gold}]\n" + CHECK, 6, "grants[0]", "needs 'level'"),
        (HEAD + "grants: [{to: ann, resource: organization, level: viewer}]\n" + CHECK, 6, "grants[0].resource", "layer"),
        (HEAD + "grants: [{to: ann, resource: layer:gold, level: boss}]\n" + CHECK, 6, "grants[0].level", "'boss'"),
        (HEAD + CHECK.replace("member: ann", "member: zed"), 7, "checks[0].member", "zed"),
        (HEAD + CHECK.replace("member: ann, ", ""), 7, "checks[0]", "names a member"),
        (HEAD + CHECK.replace("action: see", "action: sea"), 7, "checks[0].action", "'sea'"),
        (HEAD + CHECK.replace("layer:gold", "layer:tin"), 7, "checks[0].resource", "'tin'"),
        (HEAD + CHECK.replace("layer:gold", "gold"), 7, "checks[0].resource", "kind:name"),
        (HEAD + CHECK.replace(", allowed: false", ""), 7, "checks[0]", "allowed"),
        (HEAD + CHECK.replace("action: see", "can: [see], cannot: [see]").replace(", allowed: false", ""), 7, "checks[0].cannot[0]", "both"),
        (HEAD + CHECK.replace("}", ", with: {colour: red}}"), 7, "checks[0].with.colour", "has no 'colour'"),
        (HEAD + CHECK.replace("}", ", token: {all: true}}"), 7, "checks[0].token.all", "not known here"),
        (HEAD + "lists: [{member: ann, action: see, kind: layer}]\n", 6, "lists[0]", "'expect'"),
        (HEAD + "lists: [{member: ann, action: see, kind: layer, expect: [tin]}]\n", 6, "lists[0].expect[0]", "tin"),
        (HEAD + 'who_can: [{action: see, resource: "layer:gold", expect: [zed]}]\n', 6, "who_can[0].expect[0]", "zed"),
        (HEAD + CHECK.replace('resource: "layer:gold"', "kind: layer"), 7, "checks[0]", "only create and add"),
        ("members: &a [*a]\nresources: []\n" + CHECK, 1, "", "too deeply"),
    ],
)  # fmt: skip
def test_a_slip_names_the_place_and_the_remedy(text: str, line: int, key: str, says: str) -> None:
    error = refuse(text)
    assert (error.line, error.key) == (line, key), str(error)
    assert says in error.message, error.message


def passes(text: str) -> bool:
    return all(one.passed for one in run_world(read_world(text, "w.yaml")))


def test_names_are_read_as_they_are_written() -> None:
    odd = 'members: {no: {role: admin}, 42: {role: business}, "Ünïcode ☃": {role: technical}}\nresources: []\n'
    assert passes(
        odd
        + "checks:\n  - {member: no, action: create_layer, resource: organization, allowed: true}\n"
        + "  - {member: 42, action: create_layer, resource: organization, allowed: false}\n"
        + "  - {member: ÜNÏCODE ☃, action: invite_technical, resource: organization, allowed: true}\n"
    )


def test_names_match_whatever_their_case_and_form() -> None:
    world = 'members: {"Ａnn": {role: technical}}\nresources: [{kind: storage, name: "ﬁle Store", owners: [ann]}]\n'
    assert passes(world + 'checks: [{member: ANN, action: see, resource: "storage:FILE STORE", allowed: true}]\n')


@pytest.mark.parametrize(
    ("expires", "alive"),
    [
        ("2026-06-01", False),
        ('"2026-06-01"', False),
        ("2026-06-02", True),
        ("2026-06-01T00:00:00Z", False),
        ("2026-06-01T00:00:01Z", True),
        ('"2026-06-01T02:00:00+02:00"', False),
        ('"2026-06-01T01:59:59-00:01"', True),
        ("2026-06-01 00:00:01", True),
        ("2026-05-31", False),
    ],
)
def test_a_grant_ends_at_its_instant_and_a_date_means_midnight_utc(expires: str, alive: bool) -> None:
    world = (
        HEAD
        + f'now: 2026-06-01T00:00:00Z\ngrants: [{{to: ann, resource: "layer:gold", level: viewer, expires: {expires}}}]\n'
    )
    assert passes(world + CHECK.replace("allowed: false", f"allowed: {str(alive).lower()}"))


def test_the_layer_of_a_declared_table_need_not_be_declared() -> None:
    world = "members: {ann: {role: business}}\nresources: [{kind: table, name: tin.a}]\n"
    world += 'grants: [{to: ann, resource: "table:tin.a", level: viewer}]\n'
    assert passes(world + 'checks: [{member: ann, can: [see, execute], cannot: [edit], resource: "table:tin.a"}]\n')


def test_what_with_names_need_not_exist_and_is_denied() -> None:
    world = HEAD.replace("business", "admin") + "  - {kind: storage, name: wh}\n"
    assert passes(
        world
        + "checks:\n  - {member: bob, action: create, kind: data_mart, with: {storage: wh}, allowed: true}\n"
        + "  - {member: bob, action: create, kind: data_mart, with: {storage: nowhere}, allowed: false}\n"
        + "  - {member: bob, action: create, kind: data_mart, allowed: false}\n"
    )


def test_aliases_are_welcome() -> None:
    world = "members: {ann: &tech {role: technical}, bob: *tech}\nresources: []\n"
    assert passes(world + "checks: [{member: bob, action: invite_technical, resource: organization, allowed: true}]\n")
