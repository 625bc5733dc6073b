"""Checks the mails: every change of a booking that demands one has led to one, and to one only.

The histories of the bookings say which mails there must be, the outbox what became of each, and the
mail server what it took. A mail may come twice where SMTP cannot say: if the mail server died after
DATA or its response was lost, or if the process that sent it was killed before it recorded that.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.faults.checker.disturbances import MAIL_SERVER_FAULT, PROCESS_ENDS, Disturbances
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersions
from bench.faults.history import Json

# The kind of the mail about each action in the history of a booking.
KINDS = {
    "booked": "booked",
    "confirmed": "booked",
    "held": "held",
    "offered": "offered",
    "promoted": "promoted",
    "moved": "moved",
    "cancelled": "cancelled",
    "expired": "expired",
}
# A killed process may have sent mails that it had not recorded yet, for as long as an election.
UNRECORDED_S = 30.0
# In this time after a response was sent, a fault may lose it.
ON_ITS_WAY_S = 1.0
LEGITIMATE_REASONS = {"it is over, or nobody sees it any more", "the address is undeliverable"}
# Of a mail to a guardian.
FORMER_GUARDIAN = "the user is no longer a guardian, or banned"
OVERTAKEN = "a later change has a mail of its own"


def check_mails(
    lines: Iterable[Json], versions: SlotVersions, disturbances: Disturbances, report: Report
) -> None:
    """Report mails that are missing, not sent, or sent twice without a reason."""
    taken: defaultdict[str, list[Json]] = defaultdict(list)
    refused: defaultdict[str, list[Json]] = defaultdict(list)
    for line in lines:
        response = line["response"]
        if line["id"] and (response is None or response.startswith("250")):
            taken[line["id"]].append(line)
        else:
            refused[line["recipient"]].append(line)
    report.counts["mails"] = sum(map(len, taken.values()))
    report.counts["entries of the outbox"] = len(versions.outbox)
    newest: dict[str, str] = {}
    for entry_id, at, document in _demanded(versions):
        newest[entry_id.split(":")[1]] = "" if "movedTo" in document else entry_id
        if entry_id not in versions.outbox and versions.is_mail_due(at):
            report.add("mail lost", entry_id, versions=[document])
    places = _count_places(versions)
    for entry_id, entry in versions.outbox.items():
        if not versions.is_mail_due(entry["at"]):
            continue
        is_taken = to_message_id(entry.get("lead", entry_id)) in taken
        has_other = places[entry.get("slot"), entry.get("dependent", entry.get("user"))] > 1
        # The mail to a guardian has the id of the one to the child, and theirs.
        of_change = ":".join(entry_id.split(":")[:3])
        is_overtaken = entry.get("note") == OVERTAKEN and (
            has_other or of_change not in newest.values()
        )
        is_done = _is_done(entry, refused[entry.get("recipient", "")], is_taken=is_taken)
        if not is_done and not (entry["state"] == "suppressed" and is_overtaken):
            report.add("mail not sent", entry_id, versions=[entry])
    _check_arrivals(taken, versions, disturbances, report)


def _check_arrivals(
    taken: Mapping[str, Sequence[Json]],
    versions: SlotVersions,
    disturbances: Disturbances,
    report: Report,
) -> None:
    ids = {to_message_id(entry_id) for entry_id in versions.outbox}
    for message_id, arrivals in taken.items():
        if message_id not in ids:
            report.add("mail without an entry", message_id, versions=arrivals)
        report.counts["mails that came again"] += len(arrivals) - 1
        for arrival in arrivals[:-1]:
            if not _may_come_again(arrival, disturbances):
                report.add("mail sent twice", message_id, versions=arrivals)


def _count_places(versions: SlotVersions) -> Counter[tuple[object, object]]:
    """Return how often each user had a place in each slot, or waited for one."""
    ended = [*versions.ended_bookings.values(), *versions.ended_entries.values()]
    counts = Counter[tuple[object, object]]((each.get("slot"), each["user"]) for each in ended)
    for slot_id, of_slot in versions.slots.items():
        last = of_slot[-1].document
        present = [*last["bookings"], *last.get("waitlist", ())]
        counts.update((slot_id, each["user"]) for each in present)
    return counts


def _demanded(versions: SlotVersions) -> Iterator[tuple[str, str, Json]]:
    """Yield the id and the time of each entry that a booking demands, with its document."""
    for of_slot in versions.slots.values():
        last = of_slot[-1].document
        for booking in last["bookings"]:
            yield from _demanded_of(booking)
            if last["status"] == "cancelled":
                entry_id = f"cancelled:{booking['id']}:{len(_history_of(booking))}"
                yield entry_id, last["changedAt"], booking
    for id_, booking in versions.ended_bookings.items():
        yield from _demanded_of({**booking, "id": id_})
    for id_, entry in versions.ended_entries.items():
        if entry.get("by") != entry["user"]:
            yield f"waitlist_ended:{id_}:0", entry["at"], entry


def _demanded_of(booking: Json) -> Iterator[tuple[str, str, Json]]:
    for index, entry in enumerate(_history_of(booking)):
        # A booking that was moved has a mail about the new one.
        if entry["action"] in KINDS and not (entry["action"] == "moved" and "movedTo" in booking):
            entry_id = f"{KINDS[entry['action']]}:{booking['id']}:{index}"
            yield entry_id, entry["at"], booking


def _history_of(booking: Json) -> Sequence[Json]:
    created: Json = {"action": "booked", "at": booking.get("at")}
    history: Sequence[Json] = booking.get("history") or [created]
    return history


def to_message_id(entry_id: str) -> str:
    """Return the Message-ID of the mail with this entry as its first."""
    return f"<{hashlib.sha256(entry_id.encode()).hexdigest()[:40]}@slotlock.test>"


def _is_done(entry: Json, refusals: Sequence[Json], *, is_taken: bool) -> bool:
    """Return whether the mail server took the mail, or a reason explains why it did not."""
    state, note = entry["state"], entry.get("note", "")
    if state == "sent":
        return is_taken
    if state == "failed":
        return note in {refusal["response"] for refusal in refusals}
    is_to_former = "dependent" in entry and note == FORMER_GUARDIAN
    return state == "suppressed" and (note in LEGITIMATE_REASONS or is_to_former)


def _may_come_again(arrival: Json, disturbances: Disturbances) -> bool:
    """Return whether SMTP or a killed process explains that a mail was sent again."""
    at = arrival["at"]
    lost = disturbances.periods(MAIL_SERVER_FAULT)
    ends = disturbances.periods(PROCESS_ENDS)
    return (
        arrival["response"] is None
        or any(start - ON_ITS_WAY_S <= at <= end for start, end in lost)
        or any(start <= at + UNRECORDED_S and at <= end for start, end in ends)
    )
