"""Checks rules across slots: at no moment has a user more bookings than they allow."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import combinations, groupby

from bench.faults.checker.invariants import BY_USERS
from bench.faults.checker.linearizability import SlotOrder
from bench.faults.checker.refusals import campaign_id_of, full_groups, overlap
from bench.faults.checker.report import Report
from bench.faults.history import PUBLISH, UNPUBLISH, Json, Operation

# A booking with its slot.
Place = tuple[Json, Json]


def check_limits(lines: Iterable[Json], report: Report) -> None:
    """Report each moment at which the bookings of a campaign or choice group break a rule.

    The change stream has the writes of all slots in one order. Those of one transaction, as of a
    booking that moves, have the same time and are one moment. What an organizer overrode, and
    holds that are over, do not count.
    """
    slots: defaultdict[str, dict[str, Json]] = defaultdict(dict)
    written = (line for line in lines if line.get("cluster_time") and line["document"])
    for time, moment in groupby(written, key=lambda line: line["cluster_time"]):
        changed: dict[str, Json] = {}
        for line in moment:
            document = line["document"]
            for scope in filter(None, (campaign_id_of(document), document.get("choiceGroup"))):
                slots[scope][line["id"]] = document
                changed[scope] = document
        for scope, document in changed.items():
            report.counts["moments of limits"] += 1
            for description in _broken_rules(scope, document, slots[scope].values(), time[0]):
                report.add("limit exceeded", description, versions=[document])


def _broken_rules(scope: str, changed: Json, slots: Iterable[Json], at: float) -> Iterator[str]:
    """Yield what the users of a slot that changed have too much of, in all slots of its scope."""
    terms = changed.get("campaign") or {}
    if terms.get("id") != scope:
        terms = {"maxBookings": 1}
    users = {str(each["user"]) for each in changed["bookings"]}
    places: defaultdict[str, list[Place]] = defaultdict(list)
    for slot in (each for each in slots if each["status"] != "cancelled"):
        for booking in slot["bookings"]:
            if str(booking["user"]) in users and _is_live(booking, at):
                places[str(booking["user"])].append((slot, booking))
    for user, of_user in places.items():
        limited = _without(of_user, "max_bookings", "one_of_choice")
        if terms.get("maxBookings") and len(limited) > terms["maxBookings"]:
            yield f"{user} has {len(limited)} bookings of {terms['maxBookings']}"
        ruled = _without(of_user, "time_conflict")
        for (one, _), (other, _) in combinations(ruled, 2) if terms.get("forbidOverlap") else ():
            if overlap(one, other):
                yield f"{user} has two bookings at {one['start']} and {other['start']}"
    in_slot = [(changed, each) for each in changed["bookings"]]
    grouped = [booking for _, booking in _without(in_slot, "group_full")]
    yield from (f"too many of {group}" for group in full_groups(grouped, terms, excess=1))


def _is_live(booking: Json, at: float) -> bool:
    """Return whether a booking counts at a time in Unix seconds, given without a fraction."""
    history = booking.get("history")
    until = history and history[-1]["status"] == "held" and history[-1].get("heldUntil")
    return not until or datetime.fromisoformat(until).timestamp() > at + 1


def _without(places: Sequence[Place], *limits: str) -> list[Place]:
    """Return the bookings for which nobody overrode one of these limits."""
    return [
        (slot, booking)
        for slot, booking in places
        if not any(
            set(limits) & set(entry.get("overriddenLimits") or ())
            for entry in booking.get("history") or ()
        )
    ]


def check_unpublished(
    operations: Sequence[Operation], orders: dict[str, SlotOrder], report: Report
) -> None:
    """Report bookings by members while their campaign was not published, as its organizer knew."""
    organizers = {each.user_id for each in operations if each.client.startswith("organizer")}
    closed: dict[str, list[tuple[float, float]]] = defaultdict(list)
    since: dict[str, float] = {}
    for operation in operations:
        campaign = str(operation.input.get("id", ""))[-24:]
        is_done = (operation.outcome or {}).get("__typename") == "Campaign"
        if operation.operation == UNPUBLISH and is_done and operation.finished_at:
            since[campaign] = operation.finished_at
        elif operation.operation == PUBLISH and campaign in since:
            closed[campaign].append((since.pop(campaign), operation.started_at))
    for order in orders.values():
        periods = closed[campaign_id_of(order.versions[-1].document) or ""]
        for id_, index in order.booked.items() if periods else ():
            booking = order.versions[index].bookings[id_]
            if booking.creation not in BY_USERS:
                continue
            from_, to = order.existed_from[index], order.visible_by[index]
            is_closed = any(start < from_ and to < end for start, end in periods)
            if is_closed and booking.created_by not in organizers:
                document = order.versions[index].document
                report.add("booked while unpublished", id_, versions=[document])
