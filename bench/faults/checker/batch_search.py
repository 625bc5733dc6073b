"""Searches the states inside one write: a batch decides several commands, one after the other."""

from dataclasses import replace

from bench.faults.checker.effects import Effect
from bench.faults.checker.refusals import ResponseModel
from bench.faults.checker.search import Step, find_order
from bench.faults.checker.versions import SlotVersion

# More changes than these are not searched: the response counts as explained.
MAX_CHANGES = 12

# The bookings and waitlist entries that have appeared or ended so far, and whether the response
# was given.
State = tuple[frozenset[str], bool]


def explained_inside(
    before: SlotVersion, after: SlotVersion, effect: Effect, explanations: ResponseModel
) -> bool:
    """Return whether an order of the changes between two versions explains a response."""
    changes = [
        *(before.bookings.keys() ^ after.bookings.keys()),
        *(set(before.waitlist) ^ set(after.waitlist)),
    ]
    names = [each if isinstance(each, str) else f"entry {each[0]}" for each in changes]
    confirmed = [
        f"status {id_}"
        for id_, booking in after.bookings.items()
        if id_ in before.bookings and before.bookings[id_] != booking
    ]
    names += confirmed
    if len(names) > MAX_CHANGES:
        return True

    def change(name: str) -> Step[State]:
        def apply(state: State) -> State | None:
            applied = state[0] | {name}
            return (applied, state[1]) if _between(before, after, applied).free >= 0 else None

        return Step(name, apply)

    def respond(state: State) -> State | None:
        version = _between(before, after, state[0])
        return (state[0], True) if explanations.explains(version, effect) else None

    steps = [*map(change, names), Step(effect.outcome, respond)]
    return find_order(steps, (frozenset(), False)) is not None


def _between(before: SlotVersion, after: SlotVersion, applied: frozenset[str]) -> SlotVersion:
    bookings = {id_: each for id_, each in before.bookings.items() if id_ not in applied}
    bookings |= {
        id_: booking
        for id_, booking in after.bookings.items()
        if (id_ in applied and id_ not in before.bookings) or f"status {id_}" in applied
    }
    waitlist = tuple(each for each in before.waitlist if f"entry {each[0]}" not in applied)
    joined = (
        each
        for each in after.waitlist
        if f"entry {each[0]}" in applied and each not in before.waitlist
    )
    return replace(before, bookings=bookings, waitlist=(*waitlist, *joined))
