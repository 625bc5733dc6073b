"""Whether all that was acknowledged is there, and nothing is there that nobody asked for."""

from collections import defaultdict
from datetime import datetime

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.idempotency import key_hash
from bench.soak.run_log import ClientOperation, Json, RunLog, SentRequest, raw_id

# The server goes on for so long with what a client gave up on.
SERVER_CONTINUES_S = 60.0
MAX_CLOCK_SKEW_S = 0.5
BOOKING_OPERATIONS = ("book", "bookAll", "move", "request")
USER_ACTIONS = ("booked", "held", "moved")

RecordsById = dict[str, BookingRecord]


def check_acknowledged(run_log: RunLog, records: RecordsById, waitlist_entry_ids: set[str]) -> None:
    """Every grant against the records. `turns`: ids of all turns in line that there ever were."""
    for act in run_log.operations:
        for sent in act.requests:
            if sent.is_success:
                run_log.checks["grants found in the records"] += 1
                for wrong in _acknowledgement_problems(act, sent, records):
                    where = (
                        f"{act.name} by {act.user_id} key {act.idempotency_key} "
                        f"at {sent.started_at:.3f}"
                    )
                    run_log.record_violation("acknowledged", f"{where}: {wrong}")
            if sent.outcome == "WaitlistJoined":
                run_log.checks["turns found in the records"] += 1
                turn = raw_id(sent.response["entry"]["id"])
                if turn not in waitlist_entry_ids and turn not in records:
                    run_log.record_violation(
                        "acknowledged", f"turn {turn} of {act.user_id} is nowhere"
                    )


def _acknowledgement_problems(
    operation: ClientOperation, request: SentRequest, records: RecordsById
) -> list[str]:
    answer = request.response
    told: list[Json] = list(answer.get("bookings") or [answer["booking"]])
    found = [records.get(raw_id(booking["id"])) for booking in told]
    wrong = [f"{b['id']} is nowhere" for b, r in zip(told, found, strict=True) if r is None]
    there = [record for record in found if record]
    for booking, record in zip(told, found, strict=True):
        history = [entry["action"].lower() for entry in booking.get("history", ())]
        if record and record.actions[: len(history)] != history:
            wrong.append(f"{record.id} was told as {history} and is {record.actions}")
    if request.outcome == "AllBooked" and len(told) != len(operation.claims):
        wrong.append(f"{len(told)} bookings for {len(operation.claims)} claims")
    if request.outcome == "BookingCancelled" and any(
        r.is_live or r.status != "cancelled" for r in there
    ):
        wrong.append(f"is {there[0].status}")
    if request.outcome == "BookingConfirmed" and all(
        entry["status"] != "confirmed" for r in there for entry in r.history
    ):
        wrong.append(f"was never confirmed: {there and there[0].actions}")
    if request.outcome == "BookingMoved" and there:
        old = records.get(raw_id(answer["oldBooking"]["id"]))
        if (
            old is None
            or old.is_live
            or old.moved_to != there[0].id
            or there[0].moved_from != old.id
        ):
            wrong.append(f"{there[0].id} and the old booking do not name each other")
    return wrong


def _acknowledged_booking_ids(run_log: RunLog) -> set[str]:
    """The bookings that people were told of."""
    answers = [
        told.outcome for told in run_log.ticket_observations if told.outcome_name == "Booked"
    ]
    # To hear of it later is not to have been told of its making.
    grants = (act.first_success for act in run_log.operations if act.name in BOOKING_OPERATIONS)
    answers += [grant.response for grant in grants if grant]
    told = (booking for each in answers for booking in each.get("bookings") or [each["booking"]])
    return {raw_id(booking["id"]) for booking in told}


def _unresolved_operations(
    run_log: RunLog,
) -> defaultdict[tuple[str, str, str], list[ClientOperation]]:
    """Of who asks, the slot and the person: the acts that may have been done unheard."""
    told = {telling.key for telling in run_log.ticket_observations}
    found: defaultdict[tuple[str, str, str], list[ClientOperation]] = defaultdict(list)
    for act in run_log.operations:
        if act.name not in BOOKING_OPERATIONS or act.first_success or not act.is_unknown:
            continue
        if act.idempotency_key is None or (act.user_id, key_hash(act)) not in told:
            for slot, user in act.claims:
                found[act.user_id, slot, user].append(act)
    return found


def check_origins(run_log: RunLog, records: RecordsById) -> None:
    """Every booking that a person made comes from an act that was granted, or never answered."""
    granted, open_claims = _acknowledged_booking_ids(run_log), _unresolved_operations(run_log)
    orphans = [
        record
        for record in sorted(records.values(), key=lambda record: record.created_at)
        if record.id not in granted and record.actions[0] in USER_ACTIONS and record.created_by
    ]
    # What one act books has one time.
    made_at = defaultdict[tuple[str | None, datetime], set[tuple[str, str]]](set)
    for record in orphans:
        made_at[record.created_by, record.created_at].add((record.slot_id, record.user_id))
    for record in orphans:
        run_log.checks["bookings nobody was told of"] += 1
        claims = open_claims[record.created_by or "", record.slot_id, record.user_id]
        origins = [act for act in claims if _could_have_created(act, record)]
        together = made_at[record.created_by, record.created_at]
        whole = next((act for act in origins if together >= set(act.claims)), None)
        what = (
            f"{record.id} in {record.slot_id} for {record.user_id} "
            f"by {record.created_by} at {record.created_at}"
        )
        if whole is not None:
            claims.remove(whole)
        elif origins:
            first = origins[0]
            what = (
                f"{what}: one of {first.claims} under {first.idempotency_key} "
                f"at {first.requests[0].started_at:.3f}"
            )
            run_log.record_violation("partial bookSlots", what)
        else:
            run_log.record_violation("from nowhere", f"{what}: {record.actions}")


def _could_have_created(operation: ClientOperation, record: BookingRecord) -> bool:
    made, deed = record.created_at.timestamp(), record.actions[0]
    first, last = (
        operation.requests[0].started_at,
        max(sent.ended_at for sent in operation.requests),
    )
    wished = operation.variables.get("input", {}).get("hold")
    as_wished = deed == ("moved" if operation.name == "move" else "held" if wished else "booked")
    return as_wished and first - MAX_CLOCK_SKEW_S <= made <= last + SERVER_CONTINUES_S
