"""Searches an order of concurrent steps that explains all of them, as Wing and Gong describe.

"Testing and Verifying Concurrent Objects" (1993), with the memory of Lowe, "Testing for
linearizability" (2017): a set of steps that led to a state once is not tried again.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Step(Generic[State]):
    """One operation; `apply` returns the state after it, or None if it is impossible there."""

    name: str
    apply: Callable[[State], State | None]
    started_at: float = 0.0
    finished_at: float = float("inf")
    is_optional: bool = False


def find_order(steps: Sequence[Step[State]], initial: State) -> list[str] | None:
    """Return the names of the steps in an order that explains them, or None without one.

    A step takes effect between its start and its end, and an optional one perhaps never.
    """
    tried: set[tuple[int, State]] = set()
    required = sum(1 << index for index, step in enumerate(steps) if not step.is_optional)
    stack: list[tuple[int, State, tuple[str, ...]]] = [(0, initial, ())]
    while stack:
        done, state, names = stack.pop()
        if done & required == required:
            return list(names)
        if (done, state) in tried:
            continue
        tried.add((done, state))
        remaining = [index for index in range(len(steps)) if not done >> index & 1]
        latest = min(
            (steps[index].finished_at for index in remaining if not steps[index].is_optional),
            default=float("inf"),
        )
        for index in reversed(remaining):
            step = steps[index]
            if step.started_at > latest:
                continue
            after = step.apply(state)
            if after is not None:
                stack.append((done | 1 << index, after, (*names, step.name)))
    return None
