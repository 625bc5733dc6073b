"""Guards of edits of several slots, and a pause point between plan and write."""

from collections.abc import Callable
from typing import Any

from slotlock.domain.slots import series
from slotlock.services.slots import edit_command, editing
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

original_changes_per_slot, original_resource_rivals = (
    series.changes_per_slot,
    editing.resource_rivals,
)


def plan_once() -> None:
    """Compute the change of each slot once and reuse it in every attempt."""
    plans: list[Any] = []

    def reuse_first_plan(*arguments: Any) -> Any:
        plans.append(original_changes_per_slot(*arguments))
        return plans[0]

    replace_everywhere(original_changes_per_slot, reuse_first_plan)


def _return_none(*_: Any) -> None:
    return None


def ignore_plan_basis() -> None:
    """Write the slots without comparing them with those that the plan was based on."""
    replace_everywhere(edit_command.plan_basis, _return_none)


GUARDS = {"replanning": plan_once, "plan-basis": ignore_plan_basis}


async def _find_rivals_after_pause(*arguments: Any) -> Any:
    await pause_if_selected("plan")
    return await original_resource_rivals(*arguments)


def _pause_after_plan() -> None:
    replace_everywhere(original_resource_rivals, _find_rivals_after_pause)


PAUSES: dict[str, Callable[[], None]] = {"plan": _pause_after_plan}
