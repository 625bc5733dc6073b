"""Whether all that was acknowledged is there, and nothing is there that nobody asked for."""

from collections import defaultdict

from bench.soak.ledger import Act, Json, Ledger, Send, hex_of
from bench.soak.records import Record

# The server goes on for so long with what a client gave up on.
GOES_ON_S = 60.0
EARLY_S = 0.5
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


def check_origins(ledger: Ledger, records: Records) -> None:
    """Every booking that a person made comes from an act that was granted, or never answered."""
    granted: set[str] = set()
    open_claims: defaultdict[tuple[str, str, str], list[Act]] = defaultdict(list)
    for act in ledger.acts:
        if grant := act.grant:
            told = grant.answer.get("bookings") or [grant.answer["booking"]]
            granted.update(hex_of(booking["id"]) for booking in told)
        elif act.unknown:
            for slot, user in act.claims:
                open_claims[act.by, slot, user].append(act)
    unheard: defaultdict[Act, list[Record]] = defaultdict(list)
    for record in sorted(records.values(), key=lambda record: record.at):
        if record.id in granted or record.deeds[0] not in MADE_BY_PEOPLE or record.by is None:
            continue
        ledger.checks["bookings nobody was told of"] += 1
        claims = open_claims[record.by, record.slot, record.user]
        if origin := next((act for act in claims if _may_be(act, record)), None):
            claims.remove(origin)
            unheard[origin].append(record)
        else:
            what = f"{record.id} in {record.slot} for {record.user} at {record.at}: {record.deeds}"
            ledger.violation("from nowhere", what)
    for act, made in unheard.items():
        if act.name == "bookAll" and len(made) != len(act.claims):
            what = f"{[r.id for r in made]} of {len(act.claims)} claims by {act.by} key {act.key}"
            ledger.violation("partial bookSlots", what)


def _may_be(act: Act, record: Record) -> bool:
    made = record.at.timestamp()
    first, last = act.sends[0].began, max(sent.ended for sent in act.sends)
    moved = record.deeds[0] == "moved"
    return first - EARLY_S <= made <= last + GOES_ON_S and moved == (act.name == "move")
