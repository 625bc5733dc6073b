"""Checks that every acknowledged booking exists, and that every booking was requested."""

from collections import defaultdict
from datetime import datetime

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.idempotency import key_hash
from bench.soak.run_log import ClientOperation, Json, RunLog, SentRequest, raw_id

# The server continues with a request for so long after its client has hung up.
SERVER_CONTINUES_S = 60.0
MAX_CLOCK_SKEW_S = 0.5
BOOKING_OPERATIONS = ("book", "bookAll", "move", "request")
USER_ACTIONS = ("booked", "held", "moved")

RecordsById = dict[str, BookingRecord]


def check_acknowledged(run_log: RunLog, records: RecordsById, waitlist_entry_ids: set[str]) -> None:
    """Compare every success with the records; the ids cover all waitlist entries ever."""
    for operation in run_log.operations:
        for request in operation.requests:
            if request.is_success:
                run_log.checks["successes found in the records"] += 1
                for problem in _acknowledgement_problems(operation, request, records):
                    where = (
                        f"{operation.name} by {operation.user_id} "
                        f"key {operation.idempotency_key} at {request.started_at:.3f}"
                    )
                    run_log.record_violation("acknowledged", f"{where}: {problem}")
            if request.outcome == "WaitlistJoined":
                run_log.checks["waitlist entries found"] += 1
                entry_id = raw_id(request.response["entry"]["id"])
                if entry_id not in waitlist_entry_ids and entry_id not in records:
                    run_log.record_violation(
                        "acknowledged", f"waitlist entry {entry_id} of {operation.user_id} is gone"
                    )


def _acknowledgement_problems(
    operation: ClientOperation, request: SentRequest, records: RecordsById
) -> list[str]:
    response = request.response
    bookings: list[Json] = list(response.get("bookings") or [response["booking"]])
    found = [records.get(raw_id(booking["id"])) for booking in bookings]
    problems = [f"{b['id']} is gone" for b, r in zip(bookings, found, strict=True) if r is None]
    existing = [record for record in found if record]
    for booking, record in zip(bookings, found, strict=True):
        history = [entry["action"].lower() for entry in booking.get("history", ())]
        if record and record.actions[: len(history)] != history:
            problems.append(f"{record.id} had the history {history} and has {record.actions}")
    if request.outcome == "AllBooked" and len(bookings) != len(operation.claims):
        problems.append(f"{len(bookings)} bookings for {len(operation.claims)} claims")
    if request.outcome == "BookingCancelled" and any(
        record.is_live or record.status != "cancelled" for record in existing
    ):
        problems.append(f"is {existing[0].status}")
    if request.outcome == "BookingConfirmed" and all(
        entry["status"] != "confirmed" for record in existing for entry in record.history
    ):
        problems.append(f"was never confirmed: {existing and existing[0].actions}")
    if request.outcome == "BookingMoved" and existing:
        new = existing[0]
        old = records.get(raw_id(response["oldBooking"]["id"]))
        if old is None or old.is_live or old.moved_to != new.id or new.moved_from != old.id:
            problems.append(f"{new.id} and the old booking do not name each other")
    return problems


def _acknowledged_booking_ids(run_log: RunLog) -> set[str]:
    """Return the ids of all bookings whose creation was acknowledged to its client."""
    responses = [
        observation.outcome
        for observation in run_log.ticket_observations
        if observation.outcome_name == "Booked"
    ]
    # Other operations mention bookings too, but do not acknowledge their creation.
    successes = (
        operation.first_success
        for operation in run_log.operations
        if operation.name in BOOKING_OPERATIONS
    )
    responses += [success.response for success in successes if success]
    bookings = (
        booking
        for response in responses
        for booking in response.get("bookings") or [response["booking"]]
    )
    return {raw_id(booking["id"]) for booking in bookings}


def _unresolved_operations(
    run_log: RunLog,
) -> defaultdict[tuple[str, str, str], list[ClientOperation]]:
    """Return operations that may have booked without a response, by caller, slot and user."""
    observed_keys = {observation.key for observation in run_log.ticket_observations}
    found: defaultdict[tuple[str, str, str], list[ClientOperation]] = defaultdict(list)
    for operation in run_log.operations:
        if (
            operation.name not in BOOKING_OPERATIONS
            or operation.first_success
            or not operation.is_unknown
        ):
            continue
        key = (operation.user_id, key_hash(operation))
        if operation.idempotency_key is None or key not in observed_keys:
            for slot_id, user_id in operation.claims:
                found[operation.user_id, slot_id, user_id].append(operation)
    return found


def check_origins(run_log: RunLog, records: RecordsById) -> None:
    """Check that every booking by a user comes from a success or an unresolved operation."""
    acknowledged_ids = _acknowledged_booking_ids(run_log)
    unresolved = _unresolved_operations(run_log)
    unacknowledged = [
        record
        for record in sorted(records.values(), key=lambda record: record.created_at)
        if record.id not in acknowledged_ids
        and record.actions[0] in USER_ACTIONS
        and record.created_by
    ]
    # All bookings of one operation have the same time.
    created_together = defaultdict[tuple[str | None, datetime], set[tuple[str, str]]](set)
    for record in unacknowledged:
        created_together[record.created_by, record.created_at].add((record.slot_id, record.user_id))
    for record in unacknowledged:
        run_log.checks["unacknowledged bookings"] += 1
        candidates = unresolved[record.created_by or "", record.slot_id, record.user_id]
        origins = [operation for operation in candidates if _could_have_created(operation, record)]
        together = created_together[record.created_by, record.created_at]
        complete = next((o for o in origins if together >= set(o.claims)), None)
        description = (
            f"{record.id} in {record.slot_id} for {record.user_id} "
            f"by {record.created_by} at {record.created_at}"
        )
        if complete is not None:
            candidates.remove(complete)
        elif origins:
            first = origins[0]
            description = (
                f"{description}: one of {first.claims} under {first.idempotency_key} "
                f"at {first.requests[0].started_at:.3f}"
            )
            run_log.record_violation("partial bookSlots", description)
        else:
            run_log.record_violation("unrequested booking", f"{description}: {record.actions}")


def _could_have_created(operation: ClientOperation, record: BookingRecord) -> bool:
    created_at, action = record.created_at.timestamp(), record.actions[0]
    earliest = operation.requests[0].started_at - MAX_CLOCK_SKEW_S
    latest = max(request.ended_at for request in operation.requests) + SERVER_CONTINUES_S
    is_hold = operation.variables.get("input", {}).get("hold")
    expected = "moved" if operation.name == "move" else "held" if is_hold else "booked"
    return action == expected and earliest <= created_at <= latest
