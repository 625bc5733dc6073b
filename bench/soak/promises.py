"""Whether all that was acknowledged is there, and nothing is there that nobody asked for."""

from collections import defaultdict
from datetime import datetime

from bench.soak.keys import key_hash
from bench.soak.ledger import Act, Json, Ledger, Send, hex_of
from bench.soak.records import Record

# The server goes on for so long with what a client gave up on.
GOES_ON_S = 60.0
EARLY_S = 0.5
MAKING = ("book", "bookAll", "move", "request")
MADE_BY_PEOPLE = ("booked", "held", "moved")

Records = dict[str, Record]


def check_promises(ledger: Ledger, records: Records, turns: set[str]) -> None:
    """Every grant against the records. `turns`: ids of all turns in line that there ever were."""
    for act in ledger.acts:
        for sent in act.sends:
            if sent.granted:
                ledger.checks["grants found in the records"] += 1
                for wrong in _broken(act, sent, records):
                    where = f"{act.name} by {act.by} key {act.key} at {sent.began:.3f}"
                    ledger.violation("acknowledged", f"{where}: {wrong}")
            if sent.outcome == "WaitlistJoined":
                ledger.checks["turns found in the records"] += 1
                turn = hex_of(sent.answer["entry"]["id"])
                if turn not in turns and turn not in records:
                    ledger.violation("acknowledged", f"turn {turn} of {act.by} is nowhere")


def _broken(act: Act, sent: Send, records: Records) -> list[str]:
    answer = sent.answer
    told: list[Json] = list(answer.get("bookings") or [answer["booking"]])
    found = [records.get(hex_of(booking["id"])) for booking in told]
    wrong = [f"{b['id']} is nowhere" for b, r in zip(told, found, strict=True) if r is None]
    there = [record for record in found if record]
    for booking, record in zip(told, found, strict=True):
        history = [entry["what"].lower() for entry in booking.get("history", ())]
        if record and record.deeds[: len(history)] != history:
            wrong.append(f"{record.id} was told as {history} and is {record.deeds}")
    if sent.outcome == "AllBooked" and len(told) != len(act.claims):
        wrong.append(f"{len(told)} bookings for {len(act.claims)} claims")
    if sent.outcome == "BookingCancelled" and any(r.live or r.status != "cancelled" for r in there):
        wrong.append(f"is {there[0].status}")
    if sent.outcome == "BookingConfirmed" and all(
        entry["to"] != "confirmed" for r in there for entry in r.log
    ):
        wrong.append(f"was never confirmed: {there and there[0].deeds}")
    if sent.outcome == "BookingMoved" and there:
        old = records.get(hex_of(answer["oldBooking"]["id"]))
        if old is None or old.live or old.target != there[0].id or there[0].origin != old.id:
            wrong.append(f"{there[0].id} and the old booking do not name each other")
    return wrong


def _granted(ledger: Ledger) -> set[str]:
    """The bookings that people were told of."""
    answers = [told.outcome for told in ledger.tellings if told.said == "Booked"]
    # To hear of it later is not to have been told of its making.
    grants = (act.grant for act in ledger.acts if act.name in MAKING)
    answers += [grant.answer for grant in grants if grant]
    told = (booking for each in answers for booking in each.get("bookings") or [each["booking"]])
    return {hex_of(booking["id"]) for booking in told}


def _open_claims(ledger: Ledger) -> defaultdict[tuple[str, str, str], list[Act]]:
    """Of who asks, the slot and the person: the acts that may have been done unheard."""
    told = {telling.key for telling in ledger.tellings}
    found: defaultdict[tuple[str, str, str], list[Act]] = defaultdict(list)
    for act in ledger.acts:
        if act.name not in MAKING or act.grant or not act.unknown:
            continue
        if act.key is None or (act.by, key_hash(act)) not in told:
            for slot, user in act.claims:
                found[act.by, slot, user].append(act)
    return found


def check_origins(ledger: Ledger, records: Records) -> None:
    """Every booking that a person made comes from an act that was granted, or never answered."""
    granted, open_claims = _granted(ledger), _open_claims(ledger)
    orphans = [
        record
        for record in sorted(records.values(), key=lambda record: record.at)
        if record.id not in granted and record.deeds[0] in MADE_BY_PEOPLE and record.by
    ]
    # What one act books has one time.
    made_at = defaultdict[tuple[str | None, datetime], set[tuple[str, str]]](set)
    for record in orphans:
        made_at[record.by, record.at].add((record.slot, record.user))
    for record in orphans:
        ledger.checks["bookings nobody was told of"] += 1
        claims = open_claims[record.by or "", record.slot, record.user]
        origins = [act for act in claims if _may_be(act, record)]
        together = made_at[record.by, record.at]
        whole = next((act for act in origins if together >= set(act.claims)), None)
        what = f"{record.id} in {record.slot} for {record.user} by {record.by} at {record.at}"
        if whole is not None:
            claims.remove(whole)
        elif origins:
            first = origins[0]
            what = f"{what}: one of {first.claims} under {first.key} at {first.sends[0].began:.3f}"
            ledger.violation("partial bookSlots", what)
        else:
            ledger.violation("from nowhere", f"{what}: {record.deeds}")


def _may_be(act: Act, record: Record) -> bool:
    made, deed = record.at.timestamp(), record.deeds[0]
    first, last = act.sends[0].began, max(sent.ended for sent in act.sends)
    wished = act.variables.get("input", {}).get("hold")
    as_wished = deed == ("moved" if act.name == "move" else "held" if wished else "booked")
    return as_wished and first - EARLY_S <= made <= last + GOES_ON_S
