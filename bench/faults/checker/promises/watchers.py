"""Checks the messages to subscribers: each was true at that time, and soon after it changed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.effects import LOST
from bench.faults.checker.invariants import CLOCK_AHEAD_S
from bench.faults.checker.linearizability import SlotOrder
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion, SlotVersions
from bench.faults.history import Json, Operation

# Live updates come within 2.5 s where processes are not overloaded; in a campaign they may be.
# Only the time without a fault counts.
STALE_S = 4.0
# An overloaded app ends a subscription whose first state it cannot read in time.
FIRST_STATE_S = 12.0
# What a user does not do alone, by the last action of the booking.
BY_OTHERS = {"promoted": "PROMOTED", "offered": "OFFERED", "expired": "EXPIRED"}
# What somebody else may do for a user.
FOR_USERS = {"booked": "BOOKED", "held": "HELD"}

OLD = "a version that was old"

# The id of a booking, and the action as the API names it.
BookingEvent = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The state of a slot as a response or a message showed it at a time."""

    at: float
    version: int
    remaining: int


@dataclass(slots=True)
class WatchSession:
    """One connection of a subscriber, from its first message about a slot on.

    `events` are the bookings of the user with an action, and when the subscriber received it.
    `problems` are what messages say by themselves, or compared with earlier ones.
    `tickets` has when each was subscribed, and `final` when its final state arrived.
    """

    name: str
    user_id: str
    begun_at: float
    ended_at: float = float("inf")
    states: defaultdict[str, list[ObservedState]] = field(default_factory=lambda: defaultdict(list))
    events: dict[BookingEvent, float] = field(default_factory=dict)
    tickets: dict[str, float] = field(default_factory=dict)
    final: dict[str, float] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add_state(self, line: Json) -> None:
        """Add a state of a slot."""
        remaining = line["remaining"]
        if remaining < 0 or line["isBooked"] != (remaining == 0):
            self.problems.append(f"slot {line['slot']}: {remaining} remaining and not so booked")
        self.states[line["slot"]].append(ObservedState(line["at"], line["version"], remaining))

    def add_event(self, line: Json) -> None:
        """Add an event of a booking: never about what the user does, nor older than another."""
        booking, action = line["booking"], line["action"]
        self.events.setdefault((booking, action), line["at"])
        if line["by"] == self.user_id:
            self.problems.append(f"{action} of {booking} by the user")
        if line["length"] < self.lengths.get(booking, 0):
            self.problems.append(f"{action} of {booking} with a shorter history")
        self.lengths[booking] = line["length"]


@dataclass(frozen=True, slots=True)
class Action:
    """What others did with a booking: written and seen by all at these times.

    A subscriber finds out by a difference: `known_from` is when it could know the booking before,
    and `until` when it could no more.
    """

    user_id: str
    known_from: float
    written_at: float
    seen_at: float
    until: float = float("inf")


def to_sessions(lines: Iterable[Json]) -> list[WatchSession]:
    """Return the sessions of all subscribers; see `Watcher` for the lines."""
    sessions: dict[tuple[str, int], WatchSession] = {}
    for line in lines:
        at, key = line["at"], (line["watcher"], line["session"])
        if line["kind"] == "begin":
            sessions[key] = WatchSession(f"{key[0]}, session {key[1]}", line["user"], at)
            continue
        session = sessions[key]
        match line["kind"]:
            case "availability":
                session.add_state(line)
            case "booking":
                session.add_event(line)
            case "ticket":
                session.tickets.setdefault(line["ticket"], at)
                if line["status"] in ("ANSWERED", LOST):
                    session.final.setdefault(line["ticket"], at)
            case "end":
                session.ended_at = at
    return list(sessions.values())


def check_watchers(
    sessions: Sequence[WatchSession],
    orders: dict[str, SlotOrder],
    versions: SlotVersions,
    operations: Sequence[Operation],
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report messages to subscribers that were late, missing or wrong."""
    report.counts["sessions of subscribers"] = len(sessions)
    actions = dict(_actions(orders, versions))
    answered_at = _answered_at(operations)
    watched = {slot_id for session in sessions for slot_id in session.states}
    for session in sessions:
        if disturbances.calm_s(session.begun_at, session.ended_at) > FIRST_STATE_S:
            for slot_id in watched - session.states.keys():
                description = f"{session.name} received nothing of slot {slot_id}"
                report.add("stale subscriber", description)
        for slot_id, states in session.states.items():
            report.counts["states sent"] += len(states)
            _check_availability(session, slot_id, states, orders.get(slot_id), disturbances, report)
        for problem in session.problems:
            report.add("wrong message to a subscriber", f"{session.name}: {problem}")
        _check_events(session, actions, versions, disturbances, report)
        for ticket, since in session.tickets.items():
            due = max(answered_at.get(ticket, session.ended_at), since)
            until = min(session.final.get(ticket, session.ended_at), session.ended_at)
            if disturbances.calm_s(due, until) > STALE_S:
                report.add("stale subscriber", f"{session.name}: {ticket} has its outcome")


def _check_availability(
    session: WatchSession,
    slot_id: str,
    states: Sequence[ObservedState],
    order: SlotOrder | None,
    disturbances: Disturbances,
    report: Report,
) -> None:
    for before, after in pairwise(states):
        if after.version < before.version:
            description = f"{session.name}, slot {slot_id}: {before} before {after}"
            report.add("availability went back", description)
    ends = [*(each.at for each in states[1:]), session.ended_at]
    for each, until in zip(states, ends, strict=True):
        problem = check_observed_state(each, until, order, disturbances)
        if problem:
            kind = "stale subscriber" if problem == OLD else "wrong message to a subscriber"
            description = f"{session.name}, slot {slot_id}: {problem}, {each}, until {until:.1f}"
            report.add(kind, description, versions=order.around(each.version) if order else ())


def check_observed_state(
    state: ObservedState, valid_until: float, order: SlotOrder | None, disturbances: Disturbances
) -> str | None:
    """Return what is wrong with a state of a slot, which should have been true at `valid_until`."""
    index = order.index_of(state.version) if order else None
    if order is None or index is None:
        return "a version that never was"
    if order.existed_from[index] > state.at + CLOCK_AHEAD_S:
        return "a version before it was written"
    least, most = _remaining(order.versions[index], state.at + CLOCK_AHEAD_S)
    if not least <= state.remaining <= most:
        return f"{state.remaining} remaining instead of {least} to {most}"
    if index + 1 < len(order.versions):
        next_seen_at = order.visible_by[index + 1]
        if disturbances.calm_s(next_seen_at, valid_until) > STALE_S:
            return OLD
    return None


def _remaining(version: SlotVersion, at: float) -> tuple[int, int]:
    """Return the least and the most places that may be shown until a time.

    Holds may have expired, and free places may be promised to users on the waiting list.
    """
    over = sum(
        each.held_until is not None and each.held_until <= at for each in version.bookings.values()
    )
    return max(version.free - len(version.waitlist), 0), version.free + over


def _actions(
    orders: dict[str, SlotOrder], versions: SlotVersions
) -> Iterator[tuple[BookingEvent, Action]]:
    """Yield what others did with bookings that lasted from one version to another."""
    for order in orders.values():
        lives: dict[str, tuple[int, SlotVersion]] = {}
        for index, version in enumerate(order.versions):
            for id_ in version.bookings.keys() - lives.keys():
                lives[id_] = index, version
        for id_, (index, version) in lives.items():
            booking, end = version.bookings[id_], order.vanished.get(id_)
            until = float("inf") if end is None else order.existed_from[end]
            written_at, seen_at = order.existed_from[index], order.visible_by[index]
            name = BY_OTHERS.get(booking.creation)
            if booking.creation in FOR_USERS and booking.created_by != booking.user_id:
                name = FOR_USERS[booking.creation]
            if name:
                yield (id_, name), Action(booking.user_id, 0.0, written_at, seen_at, until)
            ended = versions.ended_bookings.get(id_)
            if end is None or not ended:
                continue
            action, by = ended["history"][-1]["action"], ended["history"][-1]["by"]
            if action == "expired" or (action == "cancelled" and by not in (None, booking.user_id)):
                over = Action(booking.user_id, seen_at, until, order.visible_by[end])
                yield (id_, action.upper()), over
        yield from _changes_by_others(order)


def _changes_by_others(order: SlotOrder) -> Iterator[tuple[BookingEvent, Action]]:
    """Yield the last change of each hold, if somebody else confirmed or extended it."""
    changed: dict[str, int] = {}
    for index, (before, after) in enumerate(pairwise(order.versions), start=1):
        for id_ in before.bookings.keys() & after.bookings.keys():
            if before.bookings[id_].held_until != after.bookings[id_].held_until:
                changed[id_] = index
    for id_, index in changed.items():
        entries = {str(each["id"]): each for each in order.versions[index].document["bookings"]}
        last, user_id = entries[id_]["history"][-1], str(entries[id_]["user"])
        end = order.vanished.get(id_)
        until = float("inf") if end is None else order.existed_from[end]
        known_from = order.visible_by[order.booked[id_]]
        if last["action"] in ("confirmed", "extended") and last["by"] not in (None, user_id):
            times = order.existed_from[index], order.visible_by[index]
            yield (id_, last["action"].upper()), Action(user_id, known_from, *times, until)


def _check_events(
    session: WatchSession,
    actions: dict[BookingEvent, Action],
    versions: SlotVersions,
    disturbances: Disturbances,
    report: Report,
) -> None:
    for id_, name in session.events:
        report.counts["booking events sent"] += 1
        action = actions.get((id_, name))
        is_true = action is not None and action.user_id == session.user_id
        if action is None and id_ in versions.ended_bookings:
            # It began and ended within one write.
            history = versions.ended_bookings[id_]["history"]
            is_true = any(BY_OTHERS.get(entry["action"]) == name for entry in history)
        if name in BY_OTHERS.values() and not is_true:
            report.add("wrong message to a subscriber", f"{session.name}: {name} of {id_}")
    for (id_, name), action in actions.items():
        known_from = max(session.begun_at, action.known_from)
        until = min(action.until, session.ended_at)
        if (
            action.user_id != session.user_id
            or disturbances.calm_s(known_from, action.written_at) <= STALE_S
            or disturbances.calm_s(action.seen_at, until) <= STALE_S
        ):
            continue
        report.counts["booking events due"] += 1
        at = session.events.get((id_, name), float("inf"))
        if disturbances.calm_s(action.seen_at, min(at, until)) > STALE_S:
            report.add("stale subscriber", f"{session.name}: {name} of {id_} at {at}")


def _answered_at(operations: Sequence[Operation]) -> dict[str, float]:
    """Return when each ticket was first shown with its outcome."""
    answered_at: dict[str, float] = {}
    for operation in operations:
        shown, at = operation.outcome or {}, operation.finished_at
        if shown.get("__typename") == "Ticket" and shown["status"] in ("ANSWERED", LOST) and at:
            answered_at[shown["id"]] = min(at, answered_at.get(shown["id"], at))
    return answered_at
