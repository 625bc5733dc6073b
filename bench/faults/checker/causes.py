"""Every change of a slot has a cause: a command that was accepted, or whose fate is unknown.

A change without one is the work of a refused command, or a second effect of one that had its own.
A command of unknown fate is settled soon after the faults that concern it: see ADR 0041.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.effects import Effect
from bench.faults.checker.invariants import CLOCK_AHEAD_S
from bench.faults.checker.linearizability import WRITES, SlotOrder
from bench.faults.checker.report import Report
from bench.faults.checker.versions import LiveBooking, SlotVersion, SlotVersions, to_seconds
from bench.faults.history import HOLDS_END, raw_id

Target = tuple[str, str, str]
# The slots and users of the bookings that a caller created at one time.
CreatedTogether = defaultdict[tuple[str | None, str], set[tuple[str, str]]]
# A request ends after 6 s and the wait of its caller, at most 5 s; see ADR 0042. One without a
# response may be in the queue. Both times count only without a fault.
SETTLED_S = 15.0
DEQUEUED_S = 30.0
# What no command does to a hold, but a fault.
SHORTEN, HOLDS_ENDED = "shorten", re.compile(HOLDS_END)


def check_causes(
    effects: Sequence[Effect],
    orders: dict[str, SlotOrder],
    versions: SlotVersions,
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report every change that no command explains."""
    acknowledged = _acknowledged(effects)
    by_target, by_booking = _index(effects)
    created_together: CreatedTogether = defaultdict(set)
    for order in orders.values():
        for booking in _created_bookings(order):
            place = order.slot_id, booking.user_id
            created_together[booking.created_by, booking.created_at].add(place)
    for order in orders.values():
        for target, created in _unacknowledged(order, acknowledged).items():
            candidates = by_target[target]
            _check_created(
                order, target, created, candidates, created_together, disturbances, report
            )
        for index, (before, after) in enumerate(pairwise(order.versions), start=1):
            for name, id_, causes in _changes(
                before, after, order, by_target, by_booking, versions
            ):
                if any(_may_cause(each, order, index, disturbances) for each in causes):
                    continue
                during = order.existed_from[index], order.visible_by[index]
                if name == SHORTEN and disturbances.may_concern(HOLDS_ENDED, *during):
                    continue
                operations = [operation for effect in causes for operation in effect.operations]
                kind = "refused, but written" if operations else "written without a command"
                documents = [before.document, after.document]
                report.add(kind, f"{name} {id_}", operations, documents)


def _may_cause(effect: Effect, order: SlotOrder, index: int, disturbances: Disturbances) -> bool:
    """Return whether an effect may have written this version of a slot."""
    existed_from = order.existed_from[index]
    if not effect.may_have_happened or effect.started_at > order.visible_by[index]:
        return False
    if effect.is_accepted or effect.unknown_at is None:
        return existed_from <= effect.finished_at + CLOCK_AHEAD_S
    settled_s = DEQUEUED_S if effect.name == "request" else SETTLED_S
    return disturbances.calm_s(effect.unknown_at, existed_from) <= settled_s


def _acknowledged(effects: Sequence[Effect]) -> set[str]:
    """Return the bookings and waitlist entries that any response says were made."""
    ids = set[str]()
    for effect in effects:
        for operation in effect.operations:
            outcome = operation.outcome or {}
            response = outcome.get("outcome") or outcome
            if response.get("__typename") in WRITES:
                shown = response.get("booking") or response["entry"]
                ids.add(raw_id(shown["id"]))
            ids.update(raw_id(booking["id"]) for booking in response.get("bookings", ()))
    return ids


def _index(
    effects: Sequence[Effect],
) -> tuple[defaultdict[Target, list[Effect]], defaultdict[tuple[str, str], list[Effect]]]:
    by_target: defaultdict[Target, list[Effect]] = defaultdict(list)
    by_booking: defaultdict[tuple[str, str], list[Effect]] = defaultdict(list)
    for effect in effects:
        kind = {"request": "book"}.get(effect.name, effect.name)
        by_target[kind, effect.user_id, effect.slot_id].append(effect)
        if effect.booking_id:
            by_booking[kind, effect.booking_id].append(effect)
    return by_target, by_booking


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
    effects: Sequence[Effect],
    created_together: CreatedTogether,
    disturbances: Disturbances,
    report: Report,
) -> None:
    unknown = [each for each in effects if each.may_have_happened and not each.is_accepted]
    unused = sorted(unknown, key=lambda each: each.unknown_at or 0.0)
    for index, id_ in created:
        # Each effect has a command of its own: the first that would be settled.
        causes = [each for each in unused if _may_cause(each, order, index, disturbances)]
        booking = order.versions[index].bookings.get(id_)
        complete = [
            each
            for each in causes
            if booking is None
            or _claims(each) <= created_together[booking.created_by, booking.created_at]
        ]
        if complete:
            unused.remove(complete[0])
            continue
        if causes:
            version = order.versions[index].document
            report.add("some claims only", f"{target[0]} {id_}", causes[0].operations, [version])
            continue
        refused = [each for each in effects if not each.may_have_happened]
        earlier = [each for each in refused if each.sent_at <= order.visible_by[index]]
        suspects = [operation for effect in earlier[-3:] for operation in effect.operations]
        kind = "refused, but written" if suspects else "written without a command"
        if unknown:
            kind = "second effect"
            suspects += [operation for effect in unknown for operation in effect.operations]
        version = order.versions[index].document
        report.add(kind, f"{target[0]} {id_} of {target[1]}", suspects, [version])


def _created_bookings(order: SlotOrder) -> Iterator[LiveBooking]:
    return (order.versions[index].bookings[id_] for id_, index in order.booked.items())


def _claims(effect: Effect) -> set[tuple[str, str]]:
    """Return the slots and users of a request for several places; empty for another."""
    given = effect.operations[0].input.get("claims", ())
    return {(raw_id(claim["slotId"]), raw_id(claim["userId"])) for claim in given}


def _changes(
    before: SlotVersion,
    after: SlotVersion,
    order: SlotOrder,
    by_target: defaultdict[Target, list[Effect]],
    by_booking: defaultdict[tuple[str, str], list[Effect]],
    versions: SlotVersions,
) -> Iterator[tuple[str, str, list[Effect]]]:
    """Yield what was confirmed, extended, cancelled, moved or left, with the commands for it."""
    for id_, booking in before.bookings.items():
        if id_ in after.bookings:
            held_until = after.bookings[id_].held_until
            if held_until != booking.held_until:
                is_shorter = held_until and held_until < (booking.held_until or 0.0)
                name = "confirm" if held_until is None else SHORTEN if is_shorter else "extend"
                yield name, id_, by_booking[name, id_]
            continue
        ended = versions.ended_bookings.get(id_)
        action = ended["history"][-1]["action"] if ended else None
        if action in ("cancelled", "moved") and after.status != "cancelled":
            name = "cancel" if action == "cancelled" else "move"
            yield name, id_, by_booking[name, id_]
    for id_, user in before.waitlist if after.status != "cancelled" else ():
        # A user whose other bookings rule out this one leaves the waiting list without a command.
        ended = versions.ended_entries.get(id_)
        has_rules = after.document.get("campaign") or after.document.get("choiceGroup")
        if ended is None or (not ended["by"] and _has_started(after, ended["at"], versions)):
            continue
        if id_ not in after.ids and (ended["by"] or not has_rules):
            yield "leave", id_, by_target["leave", user, order.slot_id]


def _has_started(version: SlotVersion, at: str, versions: SlotVersions) -> bool:
    """Return whether the slot had started, which ends its waiting list without a command."""
    return to_seconds(at, versions.clock_offset_s) >= version.starts_at
