"""Every change of a slot has a cause: a command that was accepted, or whose fate is unknown.

A change without one is the work of a refused command, or a second effect of one that had its own.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from bench.faults.checker.effects import Effect
from bench.faults.checker.linearizability import WRITES, SlotOrder
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion, SlotVersions

Target = tuple[str, str, str]


def check_causes(
    effects: Sequence[Effect],
    orders: dict[str, SlotOrder],
    versions: SlotVersions,
    report: Report,
) -> None:
    """Report every change that no command explains."""
    acknowledged = _acknowledged(effects)
    unknown, by_booking, refused = _index(effects)
    for order in orders.values():
        for target, created in _unacknowledged(order, acknowledged).items():
            _check_created(order, target, created, unknown[target], refused[target], report)
        for index, (before, after) in enumerate(pairwise(order.versions), start=1):
            _check_changed(before, after, order.visible_by[index], by_booking, versions, report)


def _acknowledged(effects: Sequence[Effect]) -> set[str]:
    """Return the bookings and waitlist entries that any response says were made."""
    ids = set[str]()
    for effect in effects:
        for operation in effect.operations:
            outcome = operation.outcome or {}
            response = outcome.get("outcome") or outcome
            if response.get("__typename") in WRITES:
                shown = response.get("booking") or response["entry"]
                ids.add(str(shown["id"])[-24:])
    return ids


def _index(
    effects: Sequence[Effect],
) -> tuple[
    defaultdict[Target, list[Effect]],
    defaultdict[tuple[str, str], list[Effect]],
    defaultdict[Target, list[Effect]],
]:
    unknown: defaultdict[Target, list[Effect]] = defaultdict(list)
    refused: defaultdict[Target, list[Effect]] = defaultdict(list)
    by_booking: defaultdict[tuple[str, str], list[Effect]] = defaultdict(list)
    for effect in effects:
        kind = {"request": "book"}.get(effect.name, effect.name)
        target = (kind, effect.user_id, effect.slot_id)
        if effect.booking_id:
            by_booking[kind, effect.booking_id].append(effect)
        if not effect.may_have_happened:
            refused[target].append(effect)
        elif not effect.is_accepted:
            unknown[target].append(effect)
    return unknown, by_booking, refused


def _unacknowledged(
    order: SlotOrder, acknowledged: set[str]
) -> dict[Target, list[tuple[int, str]]]:
    """Return what appeared without a response, in the order of the versions."""
    created: defaultdict[Target, list[tuple[int, str]]] = defaultdict(list)
    for id_, index in order.appeared.items():
        if id_ in acknowledged:
            continue
        version = order.versions[index]
        booking = version.bookings.get(id_)
        if booking is None:
            user = next(user for entry, user in version.waitlist if entry == id_)
            created["join", user, order.slot_id].append((index, id_))
        elif booking.creation in ("promoted", "offered"):
            # It joined and was promoted within one write.
            created["join", booking.user_id, order.slot_id].append((index, id_))
        else:
            kind = "move" if booking.creation == "moved" else "book"
            created[kind, booking.user_id, order.slot_id].append((index, id_))
    return created


def _check_created(
    order: SlotOrder,
    target: Target,
    created: list[tuple[int, str]],
    unknown: list[Effect],
    refused: list[Effect],
    report: Report,
) -> None:
    starts = sorted(effect.started_at for effect in unknown)
    for count, (index, id_) in enumerate(created):
        # As many commands as there are effects must have started until then.
        if count < len(starts) and starts[count] <= order.visible_by[index]:
            continue
        earlier = [each for each in refused if each.sent_at <= order.visible_by[index]]
        suspects = [operation for effect in earlier[-3:] for operation in effect.operations]
        kind = "refused, but written" if suspects else "written without a command"
        if unknown:
            kind = "second effect"
            suspects += [operation for effect in unknown for operation in effect.operations]
        version = order.versions[index].document
        report.add(kind, f"{target[0]} {id_} of {target[1]}", suspects, [version])


def _check_changed(
    before: SlotVersion,
    after: SlotVersion,
    visible_by: float,
    by_booking: defaultdict[tuple[str, str], list[Effect]],
    versions: SlotVersions,
    report: Report,
) -> None:
    """Check that confirmed, extended, cancelled and moved bookings were to be so."""
    for id_, booking in before.bookings.items():
        if id_ in after.bookings:
            held_until = after.bookings[id_].held_until
            if held_until == booking.held_until:
                continue
            names = ["confirm"] if held_until is None else ["extend"]
        else:
            ended = versions.ended_bookings.get(id_)
            action = ended["history"][-1]["action"] if ended else None
            if action not in ("cancelled", "moved") or after.status == "cancelled":
                continue
            names = ["cancel" if action == "cancelled" else "move"]
        causes = [effect for name in names for effect in by_booking[name, id_]]
        if not any(
            effect.may_have_happened and effect.started_at <= visible_by for effect in causes
        ):
            operations = [operation for effect in causes for operation in effect.operations]
            kind = "refused, but written" if operations else "written without a command"
            report.add(kind, f"{names[0]} {id_}", operations, [before.document, after.document])
