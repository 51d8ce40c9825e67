"""How long does one decision take, with the facts in memory? Beside Cedar, Casbin and Oso."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

from benchmarks.facts import Casbin, Cedar, Oso, World, agree
from benchmarks.harness import Table, compared, in_turns, row, save

GOALS = {"Cedar (cedarpy)": 30, "Casbin": 100, "Oso": 200}


def main() -> None:
    """Ask the same questions of the same facts."""
    world = World()
    cedar, casbin, oso = Cedar(world), Casbin(world), Oso(world)
    agree(world, cedar, casbin, oso)

    def asking(ask: Callable[..., Any]) -> Callable[[], Any]:
        questions = cycle(world.questions)
        return lambda: ask(*next(questions))

    measured = in_turns(
        {
            "Headgate": asking(world.headgate),
            "Cedar (cedarpy)": asking(cedar.ask),
            "Casbin": asking(casbin.ask),
            "Oso": asking(oso.ask),
        }
    )
    table = Table(
        "One decision in memory: 20 members, 50 data marts, 400 questions, answers compared first",
        "at least 30, 100 and 200 times faster than Cedar, Casbin and Oso",
    )
    ours = measured["Headgate"]
    for name, values in measured.items():
        found = row(name, values, "µs", 1e6)
        table.rows.append(found if name == "Headgate" else compared(found, values, ours))
    for name, goal in GOALS.items():
        ratio = next(one.ratio for one in table.rows if one.name == name) or 0
        table.notes.append(f"{name}: {ratio:.0f} times slower (goal {goal}): {'met' if ratio >= goal else 'NOT MET'}")
    save("check_in_memory", [table])


if __name__ == "__main__":
    main()
