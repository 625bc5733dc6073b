"""Checks that every ticket has one outcome, the stored one, and is lost only with Redis."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.idempotency import key_hash, record_id_of
from bench.soak.run_log import (
    ClientOperation,
    RunLog,
    SentRequest,
    TicketKey,
    TicketObservation,
    parse_ticket_key,
    raw_id,
)

# The outcome name and the booking id, if any, by the id of the idempotency record.
OutcomesByRecordId = Mapping[str, tuple[str, str | None]]
LOST_RECORD = "RequestLost"
# These refusals are about the slot, so they read as SlotNotFound while the slot is hidden.
REFUSALS_WITH_SLOT = {
    "Closed",
    "SlotFull",
    "SlotCancelled",
    "SlotStarted",
    "AlreadyBooked",
    "NotYetOpen",
    "NotEligible",
    "GroupFull",
    "LimitReached",
    "TimeConflict",
}


@dataclass(slots=True)
class TicketHistory:
    """All observations of one key's tickets.

    `operations` received such a ticket; `requests` sent the key itself.
    Nobody else can send a key that the server generated for a ticket.
    """

    key: TicketKey
    operations: list[ClientOperation] = field(default_factory=list)
    requests: list[SentRequest] = field(default_factory=list)
    observations: list[TicketObservation] = field(default_factory=list)

    @property
    def last(self) -> TicketObservation:
        """Return the observation that was requested last."""
        return max(self.observations, key=TicketObservation.request_order)

    @property
    def answered(self) -> list[TicketObservation]:
        """Return all observations with an outcome, in the order of their arrival."""
        answered = (o for o in self.observations if o.status == "ANSWERED")
        return sorted(answered, key=lambda observation: observation.ended_at)

    def was_retried_after(self, lost: TicketObservation) -> bool:
        """Return whether a client may have sent the key again after this observation."""
        return any(
            request.is_unknown or request.ended_at > lost.started_at for request in self.requests
        )


def ticket_histories(run_log: RunLog) -> dict[TicketKey, TicketHistory]:
    """Return the history of each key that had a ticket."""
    histories: dict[TicketKey, TicketHistory] = {}
    for observation in run_log.ticket_observations:
        key = observation.key
        histories.setdefault(key, TicketHistory(key)).observations.append(observation)
    for operation in run_log.operations:
        if operation.name != "request":
            continue
        received = {
            parse_ticket_key(request.response["id"])
            for request in operation.requests
            if request.outcome == "Ticket"
        }
        for key in received & histories.keys():
            histories[key].operations.append(operation)
        own_key = (operation.user_id, key_hash(operation))
        if operation.idempotency_key is not None and (history := histories.get(own_key)):
            history.requests += operation.requests
    return histories


def count_ticket_ends(run_log: RunLog) -> Counter[str]:
    """Count the last outcomes of all keys."""
    return Counter(history.last.outcome_name for history in ticket_histories(run_log).values())


def check_tickets(
    run_log: RunLog,
    records: Mapping[str, BookingRecord],
    recorded_outcomes: OutcomesByRecordId,
    hidden_periods: Sequence[tuple[float, float]] = (),
) -> None:
    """Compare the observations of tickets with each other and with the database."""
    histories = ticket_histories(run_log)
    for history in histories.values():
        recorded = recorded_outcomes.get(record_id_of(*history.key), (LOST_RECORD, None))
        shown = _shown_answers(history, recorded[0], hidden_periods)
        run_log.checks["tickets"] += 1
        run_log.compared_responses += max(len(history.answered) - 1, 0)
        name = f"key {history.key[1]} of {history.key[0]}"
        for kind, problem in (
            *_ending_problems(history),
            *_change_problems(history, shown),
            *_loss_problems(run_log, history),
            *_booking_problems(history, records),
            *_record_problems(history, shown, recorded),
        ):
            run_log.record_violation(kind, f"{name}: {problem}")
    _check_shared(run_log, histories.values())


Problems = Iterable[tuple[str, str]]


def _shown_answers(
    history: TicketHistory, recorded_name: str, hidden_periods: Sequence[tuple[float, float]]
) -> list[TicketObservation]:
    """Return the answers that must be the recorded outcome, in the order of their arrival.

    While the campaign is unpublished, its slots are hidden. A refusal that is about the slot may
    then read as SlotNotFound. All others stay the same.
    """
    if recorded_name not in REFUSALS_WITH_SLOT:
        return history.answered
    return [each for each in history.answered if not _is_hidden(each, hidden_periods)]


def _is_hidden(
    observation: TicketObservation, hidden_periods: Sequence[tuple[float, float]]
) -> bool:
    return observation.outcome_name == "SlotNotFound" and any(
        since <= observation.ended_at and observation.started_at <= until
        for since, until in hidden_periods
    )


def _ending_problems(history: TicketHistory) -> Problems:
    if any(observation.status == "FAILED" for observation in history.observations):
        yield "ticket failed", history.last.ticket["id"]
    elif not history.last.is_final:
        yield "ticket without an end", f"{history.last.outcome_name} at {history.last.ended_at:.3f}"


def _change_problems(history: TicketHistory, shown: Sequence[TicketObservation]) -> Problems:
    """Yield changes of an outcome, and of a lost ticket whose key was not sent again."""
    for observation in shown:
        if observation.outcome != shown[0].outcome:
            yield "ticket outcomes differ", f"{shown[0].outcome} and {observation.outcome}"
    if history.answered:
        first = history.answered[0]
        for observation in history.observations:
            if observation.status != "ANSWERED" and observation.started_at > first.ended_at:
                delay_s = observation.started_at - first.ended_at
                yield (
                    "ticket taken back",
                    f"{observation.outcome_name} {delay_s:.3f} s after {first.outcome_name}",
                )
    for lost in history.observations:
        if lost.status != "LOST" or history.was_retried_after(lost):
            continue
        for observation in history.observations:
            if observation.status != "LOST" and observation.started_at > lost.ended_at:
                yield (
                    "ticket lost and found",
                    f"{observation.outcome_name} at {observation.ended_at:.3f}",
                )


def _loss_problems(run_log: RunLog, history: TicketHistory) -> Problems:
    """Yield a loss of the ticket during which Redis lost no data."""
    lost = [observation for observation in history.observations if observation.status == "LOST"]
    if not lost:
        return
    run_log.checks["lost tickets"] += 1
    started_at = min(
        request.started_at for operation in history.operations for request in operation.requests
    )
    lost_at = min(observation.ended_at for observation in lost)
    if not any(since <= lost_at and started_at <= until for since, until in run_log.redis_losses):
        description = f"requested at {started_at:.3f}, lost at {lost_at:.3f}"
        yield "ticket lost without a Redis loss", description


def _booking_problems(history: TicketHistory, records: Mapping[str, BookingRecord]) -> Problems:
    """Yield bookings of the outcomes that are missing, or of another slot or user."""
    booking_ids = {
        raw_id(observation.outcome["booking"]["id"])
        for observation in history.answered
        if observation.outcome_name == "Booked"
    }
    if len(booking_ids) > 1:
        yield "ticket booked twice", f"{sorted(booking_ids)}"
    for booking_id in booking_ids:
        record = records.get(booking_id)
        if record is None:
            yield "ticket without its booking", f"{booking_id} is gone"
            continue
        claims = {claim for operation in history.operations for claim in operation.claims}
        if claims != {(record.slot_id, record.user_id)}:
            yield (
                "ticket without its booking",
                f"{booking_id} is of {record.user_id} in {record.slot_id}, requested was {claims}",
            )


def _record_problems(
    history: TicketHistory, shown: Sequence[TicketObservation], recorded: tuple[str, str | None]
) -> Problems:
    """Yield differences between the outcome and the idempotency record of the key."""
    name, booking_id = recorded
    if shown:
        first = shown[0]
        booking = first.outcome.get("booking") if first.outcome_name == "Booked" else None
        if name != first.outcome_name or (booking and raw_id(booking["id"]) != booking_id):
            yield (
                "ticket recorded differently",
                f"received {first.outcome_name}, recorded {name} {booking_id}",
            )
    elif (
        not history.answered
        and history.last.status == "LOST"
        and name != LOST_RECORD
        and not history.was_retried_after(history.last)
    ):
        yield "ticket lost and recorded", f"recorded {name} {booking_id}"


def _check_shared(run_log: RunLog, histories: Iterable[TicketHistory]) -> None:
    """Check that no booking is the outcome of two keys."""
    keys_by_booking: defaultdict[str, set[TicketKey]] = defaultdict(set)
    for history in histories:
        for observation in history.answered:
            if observation.outcome_name == "Booked":
                keys_by_booking[raw_id(observation.outcome["booking"]["id"])].add(history.key)
    for booking_id, keys in keys_by_booking.items():
        run_log.checks["bookings by ticket"] += 1
        if len(keys) > 1:
            run_log.record_violation("tickets share a booking", f"{booking_id}: {sorted(keys)}")


def check_queue_is_empty(run_log: RunLog, counts: Mapping[str, int]) -> None:
    """Check that no entry remains under any key of the queue once all tickets have ended."""
    for key, count in sorted(counts.items()):
        run_log.checks["keys of the queue"] += 1
        if count:
            run_log.record_violation("queue not empty", f"{key}: {count}")
