"""Whether every ticket came to one end, the one that the truth knows, and none was lost in vain."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
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

# By the id of a kept answer its name and, of a booking, the booking's id.
OutcomesByRecordId = Mapping[str, tuple[str, str | None]]
LOST_RECORD = "RequestLost"


@dataclass(slots=True)
class TicketHistory:
    """All that was told under one key: the acts that were given its tickets, and who asked again.

    `asks` are those who sent the key itself. Nobody else can send one that was made for a ticket.
    """

    key: TicketKey
    operations: list[ClientOperation] = field(default_factory=list)
    requests: list[SentRequest] = field(default_factory=list)
    observations: list[TicketObservation] = field(default_factory=list)

    @property
    def last(self) -> TicketObservation:
        """What was asked for last."""
        return max(self.observations, key=TicketObservation.request_order)

    @property
    def answered(self) -> list[TicketObservation]:
        """Every time that it was told as answered, the first heard first."""
        answers = (telling for telling in self.observations if telling.status == "ANSWERED")
        return sorted(answers, key=lambda telling: telling.ended_at)

    def was_retried_after(self, lost: TicketObservation) -> bool:
        """Whether its key may have been asked again after it was told so."""
        return any(sent.is_unknown or sent.ended_at > lost.started_at for sent in self.requests)


def ticket_histories(run_log: RunLog) -> dict[TicketKey, TicketHistory]:
    """By key what was told of its tickets."""
    found: dict[TicketKey, TicketHistory] = {}
    for telling in run_log.ticket_observations:
        found.setdefault(telling.key, TicketHistory(telling.key)).observations.append(telling)
    for act in run_log.operations:
        if act.name != "request":
            continue
        given = {parse_ticket_key(s.response["id"]) for s in act.requests if s.outcome == "Ticket"}
        for key in given & found.keys():
            found[key].operations.append(act)
        if act.idempotency_key is not None and (story := found.get((act.user_id, key_hash(act)))):
            story.requests += act.requests
    return found


def count_ticket_ends(run_log: RunLog) -> Counter[str]:
    """How the tickets ended, a key each."""
    return Counter(story.last.outcome_name for story in ticket_histories(run_log).values())


def check_tickets(
    run_log: RunLog, records: Mapping[str, BookingRecord], recorded_outcomes: OutcomesByRecordId
) -> None:
    """Hold what was told of tickets against itself, the records and the kept answers."""
    known = ticket_histories(run_log)
    for story in known.values():
        run_log.checks["tickets"] += 1
        run_log.compared_responses += max(len(story.answered) - 1, 0)
        name = f"key {story.key[1]} of {story.key[0]}"
        for kind, wrong in (
            *_ending_problems(story),
            *_change_problems(story),
            *_loss_problems(run_log, story),
            *_booking_problems(story, records),
            *_record_problems(story, recorded_outcomes),
        ):
            run_log.record_violation(kind, f"{name}: {wrong}")
    _check_shared(run_log, known.values())


Problems = Iterable[tuple[str, str]]


def _ending_problems(history: TicketHistory) -> Problems:
    if any(telling.status == "FAILED" for telling in history.observations):
        yield "ticket set aside", history.last.ticket["id"]
    elif not history.last.is_final:
        yield "ticket without an end", f"{history.last.outcome_name} at {history.last.ended_at:.3f}"


def _change_problems(history: TicketHistory) -> Problems:
    """It stays answered with one answer, and lost until its person asks again."""
    if history.answered:
        first = history.answered[0]
        for telling in history.answered:
            if telling.outcome != first.outcome:
                yield "ticket answers differ", f"{first.outcome} and {telling.outcome}"
        for telling in history.observations:
            if telling.status != "ANSWERED" and telling.started_at > first.ended_at:
                late = telling.started_at - first.ended_at
                yield (
                    "ticket taken back",
                    f"{telling.outcome_name} {late:.3f} s after {first.outcome_name}",
                )
    for lost in history.observations:
        if lost.status != "LOST" or history.was_retried_after(lost):
            continue
        for telling in history.observations:
            if telling.status != "LOST" and telling.started_at > lost.ended_at:
                yield "ticket lost and found", f"{telling.outcome_name} at {telling.ended_at:.3f}"


def _loss_problems(run_log: RunLog, history: TicketHistory) -> Problems:
    """Lost is only what stood in line when Redis lost something."""
    lost = [telling for telling in history.observations if telling.status == "LOST"]
    if not lost:
        return
    run_log.checks["lost tickets"] += 1
    began = min(sent.started_at for act in history.operations for sent in act.requests)
    ended = min(telling.ended_at for telling in lost)
    if not any(since <= ended and began <= until for since, until in run_log.redis_losses):
        yield "ticket lost in vain", f"asked for at {began:.3f}, lost at {ended:.3f}"


def _booking_problems(history: TicketHistory, records: Mapping[str, BookingRecord]) -> Problems:
    """The booking that was told is there, once, for whoever it was asked for."""
    told = {
        raw_id(t.outcome["booking"]["id"]) for t in history.answered if t.outcome_name == "Booked"
    }
    if len(told) > 1:
        yield "ticket booked twice", f"{sorted(told)}"
    for booking in told:
        record = records.get(booking)
        if record is None:
            yield "ticket without its booking", f"{booking} is nowhere"
            continue
        wanted = {claim for act in history.operations for claim in act.claims}
        if wanted != {(record.slot_id, record.user_id)}:
            what = f"{booking} is of {record.user_id} in {record.slot_id}, asked for was {wanted}"
            yield "ticket without its booking", what


def _record_problems(history: TicketHistory, recorded_outcomes: OutcomesByRecordId) -> Problems:
    """What is kept under the key is what was told."""
    name, booking = recorded_outcomes.get(record_id_of(*history.key), (LOST_RECORD, None))
    if history.answered:
        first = history.answered[0]
        told = first.outcome.get("booking") if first.outcome_name == "Booked" else None
        if name != first.outcome_name or (told and raw_id(told["id"]) != booking):
            yield "ticket kept otherwise", f"told {first.outcome_name}, kept {name} {booking}"
    elif (
        history.last.status == "LOST"
        and name != LOST_RECORD
        and not history.was_retried_after(history.last)
    ):
        yield "ticket lost and kept", f"kept {name} {booking}"


def _check_shared(run_log: RunLog, histories: Iterable[TicketHistory]) -> None:
    """One booking answers one key."""
    owners: defaultdict[str, set[TicketKey]] = defaultdict(set)
    for story in histories:
        for telling in story.answered:
            if telling.outcome_name == "Booked":
                owners[raw_id(telling.outcome["booking"]["id"])].add(story.key)
    for booking, keys in owners.items():
        run_log.checks["bookings by ticket"] += 1
        if len(keys) > 1:
            run_log.record_violation("tickets share a booking", f"{booking}: {sorted(keys)}")


def check_queue_is_empty(run_log: RunLog, counts: Mapping[str, int]) -> None:
    """Nobody is left in line, nothing was set aside, and nothing is known of those who left.

    `left`: how much there is under each key of the queue once all tickets have ended.
    """
    for key, count in sorted(counts.items()):
        run_log.checks["keys of the queue"] += 1
        if count:
            run_log.record_violation("left in line", f"{key}: {count}")
