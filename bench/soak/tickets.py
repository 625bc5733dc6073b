"""Whether every ticket came to one end, the one that the truth knows, and none was lost in vain."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.soak.keys import kept_id, key_hash
from bench.soak.ledger import Act, Ledger, Send, Telling, TicketKey, hex_of, key_of_ticket
from bench.soak.records import Record

# By the id of a kept answer its name and, of a booking, the booking's id.
Kept = Mapping[str, tuple[str, str | None]]
LOST_MARK = "RequestLost"


@dataclass(slots=True)
class Story:
    """All that was told under one key: the acts that were given its tickets, and who asked again.

    `asks` are those who sent the key itself. Nobody else can send one that was made for a ticket.
    """

    key: TicketKey
    acts: list[Act] = field(default_factory=list)
    asks: list[Send] = field(default_factory=list)
    told: list[Telling] = field(default_factory=list)

    @property
    def last(self) -> Telling:
        """What was asked for last."""
        return max(self.told, key=Telling.asked_last)

    @property
    def answered(self) -> list[Telling]:
        """Every time that it was told as answered, the first heard first."""
        answers = (telling for telling in self.told if telling.status == "ANSWERED")
        return sorted(answers, key=lambda telling: telling.ended)

    def asked_after(self, lost: Telling) -> bool:
        """Whether its key may have been asked again after it was told so."""
        return any(sent.unknown or sent.ended > lost.began for sent in self.asks)


def stories(ledger: Ledger) -> dict[TicketKey, Story]:
    """By key what was told of its tickets."""
    found: dict[TicketKey, Story] = {}
    for telling in ledger.tellings:
        found.setdefault(telling.key, Story(telling.key)).told.append(telling)
    for act in ledger.acts:
        if act.name != "request":
            continue
        given = {key_of_ticket(s.answer["id"]) for s in act.sends if s.outcome == "Ticket"}
        for key in given & found.keys():
            found[key].acts.append(act)
        if act.key is not None and (story := found.get((act.by, key_hash(act)))):
            story.asks += act.sends
    return found


def ends(ledger: Ledger) -> Counter[str]:
    """How the tickets ended, a key each."""
    return Counter(story.last.said for story in stories(ledger).values())


def check_tickets(ledger: Ledger, records: Mapping[str, Record], kept: Kept) -> None:
    """Hold what was told of tickets against itself, the records and the kept answers."""
    known = stories(ledger)
    for story in known.values():
        ledger.checks["tickets"] += 1
        ledger.compared += max(len(story.answered) - 1, 0)
        name = f"key {story.key[1]} of {story.key[0]}"
        for kind, wrong in (
            *_ending(story),
            *_changes(story),
            *_losses(ledger, story),
            *_bookings(story, records),
            *_kept(story, kept),
        ):
            ledger.violation(kind, f"{name}: {wrong}")
    _check_shared(ledger, known.values())


Flaws = Iterable[tuple[str, str]]


def _ending(story: Story) -> Flaws:
    if any(telling.status == "SET_ASIDE" for telling in story.told):
        yield "ticket set aside", story.last.ticket["id"]
    elif not story.last.final:
        yield "ticket without an end", f"{story.last.said} at {story.last.ended:.3f}"


def _changes(story: Story) -> Flaws:
    """It stays answered with one answer, and lost until its person asks again."""
    if story.answered:
        first = story.answered[0]
        for telling in story.answered:
            if telling.outcome != first.outcome:
                yield "ticket answers differ", f"{first.outcome} and {telling.outcome}"
        for telling in story.told:
            if telling.status != "ANSWERED" and telling.began > first.ended:
                late = telling.began - first.ended
                yield "ticket taken back", f"{telling.said} {late:.3f} s after {first.said}"
    for lost in story.told:
        if lost.status != "LOST" or story.asked_after(lost):
            continue
        for telling in story.told:
            if telling.status != "LOST" and telling.began > lost.ended:
                yield "ticket lost and found", f"{telling.said} at {telling.ended:.3f}"


def _losses(ledger: Ledger, story: Story) -> Flaws:
    """Lost is only what stood in line when Redis lost something."""
    lost = [telling for telling in story.told if telling.status == "LOST"]
    if not lost:
        return
    ledger.checks["lost tickets"] += 1
    began = min(sent.began for act in story.acts for sent in act.sends)
    ended = min(telling.ended for telling in lost)
    if not any(since <= ended and began <= until for since, until in ledger.losses):
        yield "ticket lost in vain", f"asked for at {began:.3f}, lost at {ended:.3f}"


def _bookings(story: Story, records: Mapping[str, Record]) -> Flaws:
    """The booking that was told is there, once, for whoever it was asked for."""
    told = {hex_of(t.outcome["booking"]["id"]) for t in story.answered if t.said == "Booked"}
    if len(told) > 1:
        yield "ticket booked twice", f"{sorted(told)}"
    for booking in told:
        record = records.get(booking)
        if record is None:
            yield "ticket without its booking", f"{booking} is nowhere"
            continue
        wanted = {claim for act in story.acts for claim in act.claims}
        if wanted != {(record.slot, record.user)}:
            what = f"{booking} is of {record.user} in {record.slot}, asked for was {wanted}"
            yield "ticket without its booking", what


def _kept(story: Story, kept: Kept) -> Flaws:
    """What is kept under the key is what was told."""
    name, booking = kept.get(kept_id(*story.key), (LOST_MARK, None))
    if story.answered:
        first = story.answered[0]
        told = first.outcome.get("booking") if first.said == "Booked" else None
        if name != first.said or (told and hex_of(told["id"]) != booking):
            yield "ticket kept otherwise", f"told {first.said}, kept {name} {booking}"
    elif story.last.status == "LOST" and name != LOST_MARK and not story.asked_after(story.last):
        yield "ticket lost and kept", f"kept {name} {booking}"


def _check_shared(ledger: Ledger, known: Iterable[Story]) -> None:
    """One booking answers one key."""
    owners: defaultdict[str, set[TicketKey]] = defaultdict(set)
    for story in known:
        for telling in story.answered:
            if telling.said == "Booked":
                owners[hex_of(telling.outcome["booking"]["id"])].add(story.key)
    for booking, keys in owners.items():
        ledger.checks["bookings by ticket"] += 1
        if len(keys) > 1:
            ledger.violation("tickets share a booking", f"{booking}: {sorted(keys)}")


def check_line(ledger: Ledger, left: Mapping[str, int]) -> None:
    """Nobody is left in line, nothing was set aside, and nothing is known of those who left.

    `left`: how much there is under each key of the queue once all tickets have ended.
    """
    for key, count in sorted(left.items()):
        ledger.checks["keys of the queue"] += 1
        if count:
            ledger.violation("left in line", f"{key}: {count}")
