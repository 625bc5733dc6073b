"""Guards of what organisers do to several slots at once, switched off one by one."""

from typing import Any

from slotlock.desk import keeping
from slotlock.domain import series
from tests.support.variants.points import instead, reach

changes_of_each, neighbours = series.changes_of_each, keeping.neighbours


def planned_once() -> None:
    """What each slot becomes is worked out before the first try, and the next ones go by that."""
    plans: list[Any] = []

    def first_plan(*arguments: Any) -> Any:
        plans.append(changes_of_each(*arguments))
        return plans[0]

    instead(changes_of_each, first_plan)


def _nothing(*_: Any) -> None:
    return None


def planned_on_anything() -> None:
    """Nobody compares the slots that are written over with those that the plan was made of."""
    instead(keeping._planned_on, _nothing)


GUARDS = {"each-try": planned_once, "planned-on": planned_on_anything}


async def _late_neighbours(*arguments: Any) -> Any:
    await reach("plan")
    return await neighbours(*arguments)


def pausable() -> None:
    """Let an edit be stopped when it is planned, before the slots are looked at to be written."""
    instead(neighbours, _late_neighbours)
