"""Draws as organizers conduct them: collecting, closed, drawn, and published or called off.

Every step is an act that is recorded with its time and organizer. No act is ever undone.
"""

from collections.abc import Sequence
from dataclasses import field, fields, replace
from datetime import datetime, timedelta

from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.audit_notes import AuditNote, api_names, field_edits
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.campaign import CampaignBusy
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import (
    DrawId,
    DrawMethod,
    DrawRecordReaders,
    FormerDraw,
    PublicAct,
    SeedAnnouncement,
    commitment_of,
)
from slotlock.domain.shared.declare import SENT_ID, refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import normalize_line, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import document_object
from slotlock.domain.users.user import UserId

# How long after the wishes an announced seed becomes public at least: the root has to be there.
SEED_DELAY_MINUTES = 10
SERVER_SOURCE = "made by the server"
# How long a draw that replaces another one collects wishes at least.
REOPENED_FOR = timedelta(days=1)
# A worker that cannot go on with a draw tries it again after this time, then twice as long each.
FIRST_RETRY = timedelta(seconds=5)
MAX_RETRY = timedelta(minutes=10)
# From this failure on, organizers and `slotlock doctor` see the problem.
SHOWN_FAILURES = 3
MAX_WISHES = 50
MAX_SEED_LENGTH = 500
MAX_REASON_LENGTH = 500


class DrawState(DescribedEnum):
    """The progress of a draw."""

    # The last act of the draw made it.
    COLLECTING = "collecting", "Users enter wishes."
    CLOSED = "closed", "No more wishes are accepted. The root is public once it is set."
    DRAWN = "drawn", "The seed is fixed, and with it the result. Organizers see it."
    PUBLISHED = (
        "published",
        "Everybody sees the result. The places are booked, and then what is left is open.",
    )
    SUPERSEDED = "superseded", "Another draw has replaced it. Its record stays public."
    CANCELLED = "cancelled", "It was called off, or its campaign was deleted."


ACTIVE_STATES = DrawState.COLLECTING, DrawState.CLOSED, DrawState.DRAWN


@document_object
class Seed:
    """The public randomness of a draw, and where it is from.

    The server made it if `by_server`, when the draw was opened.
    """

    text: str
    source: str
    by_server: bool = False


@document_object
class DrawAct(PublicAct):
    """One act, with the state that it made; `by` is None for closing at its time.

    The opening and each change of the settings have what they set of the times and the seed.
    """

    state: DrawState
    by: UserId | None = None


@document_object
class DrawSettings:
    """How places are drawn, and until when users enter wishes.

    With `shows_demand`, users see how often each slot is wished for, too. After the publication,
    everybody books what is left: from `leftovers_open_at` on, or at once. With `joins_waitlists`,
    users without a place in a full slot join its waiting list first, in the order of the draw.
    The seed is what `seed_source` gives at `seed_at`; without them, what the server made.
    """

    method: DrawMethod
    wishes_until: datetime
    shows_demand: bool = False
    leftovers_open_at: datetime | None = None
    joins_waitlists: bool = False
    seed_source: str = ""
    seed_at: datetime | None = None
    record_for: DrawRecordReaders = DrawRecordReaders.PARTICIPANTS


@document_object
class Draw:
    """The draw of a campaign.

    `root` is set once the closed wishes are stored, at `root_at`, with the number of the entries.

    `server_seed` is made at the opening. It is secret until it is the seed of the draw.

    `is_written` says whether all that follows a publication is done: every place is booked, or
    recorded as not booked, waiting lists are joined, mails are queued, and the campaign is open.
    `record_hash` is that of the last text of its record, which is stored when it is over.
    `supersedes` is the draw before this one in the campaign, replaced or published.
    `failures` says how often in a row a worker could not go on, and `problem` why the last time.
    """

    id: DrawId
    campaign_id: CampaignId
    settings: DrawSettings
    acts: tuple[DrawAct, ...]
    server_seed: str = field(repr=False)
    version: int = 1
    root: str | None = None
    root_at: datetime | None = None
    seed: Seed | None = None
    is_written: bool = False
    record_hash: str | None = None
    supersedes: DrawId | None = None
    failures: int = 0
    problem: str | None = None
    entry_count: int | None = None

    @property
    def state(self) -> DrawState:
        """The state after the last act."""
        return self.acts[-1].state

    @property
    def announcement(self) -> SeedAnnouncement:
        """Where the seed will be from."""
        if self.settings.seed_source:
            return SeedAnnouncement(self.settings.seed_source, self.settings.seed_at)
        return SeedAnnouncement(commitment=commitment_of(self.id, self.server_seed))

    @property
    def public_acts(self) -> tuple[PublicAct, ...]:
        """What everybody sees of the acts."""
        names = [each.name for each in fields(PublicAct)]
        return tuple(PublicAct(*(getattr(act, name) for name in names)) for act in self.acts)

    @property
    def due_at(self) -> datetime | None:
        """When a worker has to go on: to close the wishes, or to finish the last act.

        A failure defers it, until the draw changes.
        """
        if self.state is DrawState.COLLECTING:
            return self.settings.wishes_until
        is_closing = self.state is DrawState.CLOSED and self.root is None
        is_publishing = self.state is DrawState.PUBLISHED and not self.is_written
        return self.acts[-1].at if is_closing or is_publishing or self.lacks_record else None

    @property
    def lacks_record(self) -> bool:
        """Whether it was replaced or called off, and the last text of its record is missing."""
        is_ended = self.state in (DrawState.SUPERSEDED, DrawState.CANCELLED)
        return is_ended and self.root is not None and self.record_hash is None

    @property
    def as_former(self) -> FormerDraw:
        """What a later draw says of this one, which is over."""
        last, has_seed = self.acts[-1], self.seed is not None
        return FormerDraw(
            self.id, last.state.value, self.root, has_seed, last.reason, self.record_hash
        )

    @property
    def is_active(self) -> bool:
        """Whether it is the draw of its campaign that goes on; there is one at most."""
        return self.state in ACTIVE_STATES

    @property
    def is_over(self) -> bool:
        """Whether a further draw may open: the server does nothing more for this one."""
        return self.is_written or self.state in (DrawState.SUPERSEDED, DrawState.CANCELLED)

    @property
    def is_public(self) -> bool:
        """Whether everybody sees its seed and result."""
        return self.state in (DrawState.PUBLISHED, DrawState.SUPERSEDED, DrawState.CANCELLED)

    @property
    def shown_problem(self) -> str | None:
        """Why a worker cannot go on, once it has failed some times in a row."""
        return self.problem if self.failures >= SHOWN_FAILURES else None

    def accepts_wishes_at(self, now: datetime) -> bool:
        """Return whether users may enter wishes."""
        return self.state is DrawState.COLLECTING and now < self.settings.wishes_until


@refusal(message="This campaign has no draw.")
class DrawNotFound:
    """The campaign does not exist, or has no draw, or none that goes on."""

    campaign_id: CampaignId = shown(SENT_ID)


@refusal(message="The draw has another state: this is not possible now.")
class WrongDrawState:
    """The act is not possible in the state of the draw."""

    state: DrawState = shown("The state of the draw.")


@refusal(message="The server is still booking the places of the former draw.")
class DrawActive:
    """A draw opens only after all that follows from the former one is done (`isWritten`)."""

    campaign_id: CampaignId = shown(SENT_ID)


@refusal(
    message="Slots have fewer free places than the draw needs. Free them, or replace the draw."
)
class DrawOutdated:
    """Slots have fewer free places than when the wishes were closed, or than the draw has given.

    Organizers free places, or replace the draw by another one, with `supersedeDraw` and a reason.
    """

    slot_ids: tuple[SlotId, ...] = shown("The slots with too few free places, at most 100.")


@refusal(message="The announced moment of the seed has not come.")
class SeedTooEarly:
    """The seed is drawn from what becomes public at `seedAt`, and nobody draws before."""

    seed_at: datetime = shown("The announced moment.")


@refusal(message="The wishes were closed after the announced moment. Replace the draw.")
class RootTooLate:
    """The seed was public before the root, so that somebody could have chosen wishes by it.

    This draw can never run. Organizers replace it, with `supersedeDraw` and a reason.
    """

    root_at: datetime | None = shown("When the root became public.")


DrawRefusal = (
    DrawNotFound
    | WrongDrawState
    | DrawActive
    | DrawOutdated
    | SeedTooEarly
    | RootTooLate
    | CampaignBusy
    | InvalidInput
)


def open_draw(
    draw_id: DrawId,
    campaign_id: CampaignId,
    settings: DrawSettings,
    by: UserId,
    now: datetime,
    server_seed: str,
    former: Draw | None = None,
    reason: str = "",
) -> Draw:
    """Return a new draw, which collects wishes, and names the former one of its campaign."""
    act, supersedes = _settings_act(settings, by, now, reason), former.id if former else None
    return Draw(draw_id, campaign_id, settings, (act,), server_seed, supersedes=supersedes)


def _settings_act(settings: DrawSettings, by: UserId, now: datetime, reason: str = "") -> DrawAct:
    source = settings.seed_source or None
    times = settings.wishes_until, source, settings.seed_at
    return DrawAct(now, DrawState.COLLECTING, reason or None, *times, by)


def reopened(settings: DrawSettings, now: datetime) -> DrawSettings:
    """Return the settings of a draw that replaces one with these: its seed is the server's.

    What is left opens at once if its time is over before the wishes are.
    """
    until, opens_at = max(settings.wishes_until, now + REOPENED_FOR), settings.leftovers_open_at
    later = opens_at if opens_at is not None and opens_at > until else None
    return replace(
        settings, wishes_until=until, leftovers_open_at=later, seed_source="", seed_at=None
    )


def validate_settings(
    settings: DrawSettings, closes_at: datetime, now: datetime
) -> InvalidInput | None:
    """Return what is wrong with the times of a draw in a campaign that closes then."""
    opens_at = settings.leftovers_open_at
    is_early = opens_at is not None and opens_at <= settings.wishes_until
    is_late = opens_at is not None and opens_at >= closes_at
    problems = {
        "wishesUntil": ProblemCode.TIME_PASSED.problem() if settings.wishes_until <= now else None,
        "leftoversOpenAt": ProblemCode.END_BEFORE_START.problem()
        if is_early
        else ProblemCode.AFTER_CLOSING.problem()
        if is_late
        else None,
    }
    if settings.seed_source or settings.seed_at:
        first = settings.wishes_until + timedelta(minutes=SEED_DELAY_MINUTES)
        is_late = settings.seed_at is not None and settings.seed_at >= first
        problem = ProblemCode.SEED_BEFORE_ROOT.problem(minutes=SEED_DELAY_MINUTES)
        problems["seedSource"] = _line_problem(settings.seed_source, MAX_SEED_LENGTH)
        problems["seedAt"] = None if is_late else problem
    found = FieldProblem.all_of(problems)
    return InvalidInput(found) if found else None


def configure(
    draw: Draw, settings: DrawSettings, by: UserId, now: datetime
) -> Draw | WrongDrawState | DrawActive:
    """Return the draw with other settings; only while it collects wishes."""
    if draw.state is DrawState.PUBLISHED:
        return DrawActive(draw.campaign_id)
    if draw.state is not DrawState.COLLECTING:
        return WrongDrawState(draw.state)
    if settings == draw.settings:
        return draw
    act = _settings_act(settings, by, now)
    return _changed(replace(draw, settings=settings, acts=(*draw.acts, act)))


def close(draw: Draw, by: UserId | None, now: datetime) -> Draw | WrongDrawState:
    """Return the draw without further wishes; closing again changes nothing."""
    if draw.state is DrawState.CLOSED:
        return draw
    return _with_act(draw, (DrawState.COLLECTING,), DrawState.CLOSED, by, now)


def with_root(draw: Draw, root: str, entry_count: int, now: datetime) -> Draw:
    """Return the closed draw with the root of its basis, which is stored with its entries."""
    return _changed(replace(draw, root=root, root_at=now, entry_count=entry_count))


def with_seed(draw: Draw, by: UserId, now: datetime, text: str | None) -> Draw | DrawRefusal:
    """Return the draw with its seed, which nobody can replace; the same seed changes nothing.

    It is what the announced source gave, or without one what the server made at the opening.
    """
    source, seed_at = draw.settings.seed_source, draw.settings.seed_at
    if source:
        seed = Seed(normalize_line(text or ""), source)
        problem = _line_problem(seed.text, MAX_SEED_LENGTH)
    else:
        seed = Seed(draw.server_seed, SERVER_SOURCE, by_server=True)
        problem = None if text is None else ProblemCode.SEED_OF_SERVER.problem()
    if problem:
        return InvalidInput((FieldProblem("seed", problem),))
    if draw.state is DrawState.DRAWN and draw.seed == seed:
        return draw
    if draw.root is None:
        return WrongDrawState(draw.state)
    if draw.state is DrawState.CLOSED and seed_at is not None:
        if draw.root_at is None or draw.root_at >= seed_at:
            return RootTooLate(draw.root_at)
        if now < seed_at:
            return SeedTooEarly(seed_at)
    drawn = _with_act(draw, (DrawState.CLOSED,), DrawState.DRAWN, by, now)
    return replace(drawn, seed=seed) if isinstance(drawn, Draw) else drawn


def _line_problem(text: str, max_length: int) -> Problem | None:
    return validate_line(text, max_length) if text else ProblemCode.TEXT_MISSING.problem()


def with_record(draw: Draw, record_hash: str) -> Draw:
    """Return the draw with the hash of the last text of its record, which is stored.

    All that follows from a published one is done.
    """
    is_written = draw.state is DrawState.PUBLISHED
    after = replace(draw, is_written=is_written, record_hash=record_hash)
    return draw if after == draw else _changed(after)


def publish(draw: Draw, by: UserId, now: datetime) -> Draw | WrongDrawState:
    """Return the published draw; publishing again changes nothing."""
    if draw.state is DrawState.PUBLISHED:
        return draw
    return _with_act(draw, (DrawState.DRAWN,), DrawState.PUBLISHED, by, now)


def supersede(draw: Draw, reason: str, by: UserId, now: datetime) -> Draw | DrawRefusal:
    """Return the draw whose record stays public, and which another one replaces."""
    reason, possible = normalize_line(reason), (DrawState.CLOSED, DrawState.DRAWN)
    return validate_reason(reason) or _with_act(
        draw, possible if draw.root else (), DrawState.SUPERSEDED, by, now, reason
    )


def validate_reason(reason: str) -> InvalidInput | None:
    """Return what is wrong with the reason for another draw."""
    problem = _line_problem(reason, MAX_REASON_LENGTH)
    return InvalidInput((FieldProblem("reason", problem),)) if problem else None


def cancel(draw: Draw, reason: str, by: UserId, now: datetime) -> Draw | DrawRefusal:
    """Return the draw that is called off; its record stays public."""
    reason, possible = normalize_line(reason), ACTIVE_STATES
    return validate_reason(reason) or _with_act(
        draw, possible, DrawState.CANCELLED, by, now, reason
    )


def _with_act(
    draw: Draw,
    possible: Sequence[DrawState],
    state: DrawState,
    by: UserId | None,
    now: datetime,
    reason: str | None = None,
) -> Draw | WrongDrawState:
    if draw.state not in possible:
        return WrongDrawState(draw.state)
    return _changed(replace(draw, acts=(*draw.acts, DrawAct(now, state, reason, by=by))))


def _changed(draw: Draw) -> Draw:
    return replace(draw, version=draw.version + 1, failures=0, problem=None)


def retry_delay(failures: int) -> timedelta:
    """Return how long a draw waits after so many failures in a row."""
    return min(FIRST_RETRY * (1 << min(failures - 1, 7)), MAX_RETRY)


_NOTED_STATES = {
    DrawState.DRAWN: NoteAction.DRAW_RUN,
    DrawState.PUBLISHED: NoteAction.DRAW_PUBLISHED,
    DrawState.SUPERSEDED: NoteAction.DRAW_SUPERSEDED,
    DrawState.CANCELLED: NoteAction.DRAW_CANCELLED,
}


def note_draw_change(
    before: Draw | None, after: Draw, by: UserId | None, now: datetime
) -> AuditNote | None:
    """Return the note of an act; None for what follows from it. Closing is done with its root."""
    edits = tuple(field_edits(api_names(DrawSettings), before and before.settings, after.settings))
    action = NoteAction.DRAW_CONFIGURED
    if before is not None and before.root != after.root:
        action, edits = NoteAction.DRAW_CLOSED, (FieldEdit("root", None, after.root),)
        by, now = after.acts[-1].by, after.acts[-1].at
    elif before is not None and before.state is not after.state:
        if after.state not in _NOTED_STATES:
            return None
        action = _NOTED_STATES[after.state]
        seed = after.seed.text if after.seed and before.seed is None else None
        edits = tuple(field_edits({"state": "state"}, before, after))
        edits += (FieldEdit("seed", None, seed),) if seed else ()
        reason = after.acts[-1].reason
        edits += (FieldEdit("reason", None, reason),) if reason else ()
    return AuditNote(now, by, action, edits, campaign_id=after.campaign_id) if edits else None
