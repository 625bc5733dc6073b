"""Outcomes of copying a campaign with its slots."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.shared.declare import refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.value_object import value_object

MAX_COPIED_SLOTS = 2_000
MAX_COPIED_MEETINGS = 10_000
# The outcome shows so many slots and so many problems.
MAX_SHOWN = 100


class CopyProblemKind(DescribedEnum):
    """Why a campaign cannot be copied to the new dates."""

    RESOURCE_TAKEN = (
        "resource_taken",
        "Another published slot uses a resource of the slot at the new time.",
    )
    RESOURCE_NOT_FOUND = "resource_not_found", "A resource of the slot does not exist any more."
    IN_PAST = "in_past", "The slot would lie in the past, or the campaign would close there."
    INVALID_TIMES = (
        "invalid_times",
        "Meetings of the slot would overlap, because of a clock change.",
    )


@value_object
class CopyProblem:
    """A problem of the campaign, or of the copy of the slot `source_id`.

    `other_id` is the existing slot that occupies the resource.
    """

    kind: CopyProblemKind
    message: Problem
    source_id: SlotId | None = None
    other_id: SlotId | None = None


@value_object
class CopiedSlot:
    """The copy of the slot `source_id`."""

    source_id: SlotId
    title: str
    start: datetime
    end: datetime
    time_zone: str


@value_object
class CampaignCopy:
    """A new campaign, and a summary of its slots: the first ones by start, and how many.

    `adjusted` are copies whose local time does not exist on the new date.
    """

    campaign: Campaign
    slot_count: int
    first_start: datetime | None
    last_end: datetime | None
    slots: tuple[CopiedSlot, ...]
    adjusted: tuple[CopiedSlot, ...]


@value_object
class CopyProblems:
    """The first problems, and how many there are."""

    problems: tuple[CopyProblem, ...]
    count: int

    @classmethod
    def of(cls, problems: Iterable[CopyProblem]) -> "CopyProblems":
        """Return the problems as an outcome shows them."""
        remaining = iter(problems)
        shown = tuple(islice(remaining, MAX_SHOWN))
        return cls(shown, len(shown) + sum(1 for _ in remaining))


@value_object
class CampaignCopyPreview:
    """What a request would create, and the problems because of which it would create nothing.

    `draft_problems` are those because of which drafts of the copy could not be published.
    """

    copy: CampaignCopy
    problems: CopyProblems
    draft_problems: CopyProblems


@refusal(message="This campaign cannot be copied: {first_problem}")
class CampaignNotCopied:
    """The campaign cannot be copied to the new dates. Nothing was created."""

    problems: CopyProblems

    @property
    def first_problem(self) -> str:
        """The first problem as a sentence."""
        return self.problems.problems[0].message


@refusal(message="At most {max_slots} slots with {max_meetings} meetings can be copied at once.")
class CampaignTooLarge:
    """The campaign has more slots or meetings than one request may copy."""

    max_slots: int = shown("How many slots one request may copy.", default=MAX_COPIED_SLOTS)
    max_meetings: int = shown(
        "How many meetings these slots may have together.", default=MAX_COPIED_MEETINGS
    )
