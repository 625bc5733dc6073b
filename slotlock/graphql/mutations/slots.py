"""What organisers do with slots."""

from datetime import datetime
from typing import Annotated, Any, assert_never

import strawberry
from strawberry import UNSET, argument, field

from slotlock.desk import keeping
from slotlock.domain import outcomes
from slotlock.domain import refusals as refused
from slotlock.domain.keeping import SlotDraft
from slotlock.domain.people import Caller
from slotlock.domain.slots import SlotKind
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.scalars import TimeZone
from slotlock.graphql.types.refusals import (
    CapacityBelowTaken,
    InvalidInput,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.graphql.types.slots import Slot

NULLABLE = ("location", "offer_minutes")


@strawberry.input(description="A slot to create.")
class CreateSlotInput:
    title: str = field(description="What it is, 1 to 200 characters.")
    start_time: datetime = field(description="When it begins.")
    end_time: datetime = field(description="When it ends, after it begins.")
    capacity: int = field(default=1, description="Places, 1 to 1000.")
    time_zone: TimeZone = field(
        default=TimeZone("UTC"), description="The zone its times are meant in."
    )
    location: str | None = field(default=None, description="Where it is, at most 200 characters.")
    kind: SlotKind = field(default=SlotKind.MEETING, description="What it is for.")
    hold_minutes: int = field(default=5, description="How long a hold lasts, 1 to 60 minutes.")
    cancel_cutoff_minutes: int = field(
        default=0,
        description="How long before the start members can no longer give a place back, 0 to 86400 "
        "minutes.",
    )
    waitlist_capacity: int = field(
        default=100, description="How many may wait, 0 to 1000; 0 for no waiting list."
    )
    waitlist_offer_minutes: int | None = field(
        default=None,
        description="How long a freed place is offered to the next in line, 1 to 10080 minutes; "
        "null books it for them outright.",
    )
    choice: str | None = field(
        default=None,
        description="A name that alternatives share, at most 100 characters: a person has a place "
        "in at most one slot of a choice. It stays as it is.",
    )
    draft: bool = field(default=False, description="Whether it waits for `publishSlot`.")


@strawberry.input(description="Changes to a slot; a field that is left out stays as it is.")
class UpdateSlotInput:
    slot_id: strawberry.ID = field(description="The slot.")
    title: str | None = field(default=UNSET, description="What it is, 1 to 200 characters.")
    start_time: datetime | None = field(default=UNSET, description="When it begins.")
    end_time: datetime | None = field(default=UNSET, description="When it ends.")
    capacity: int | None = field(
        default=UNSET, description="Places, 1 to 1000, not fewer than are taken."
    )
    time_zone: TimeZone | None = field(
        default=UNSET, description="The zone its times are meant in."
    )
    location: str | None = field(default=UNSET, description="Where it is; null removes it.")
    kind: SlotKind | None = field(default=UNSET, description="What it is for.")
    hold_minutes: int | None = field(
        default=UNSET, description="How long a hold lasts that begins from now on, 1 to 60 minutes."
    )
    cancel_cutoff_minutes: int | None = field(
        default=UNSET,
        description="How long before the start members can no longer give a place back.",
    )
    waitlist_capacity: int | None = field(
        default=UNSET, description="How many may wait, 0 to 1000; who waits already stays."
    )
    waitlist_offer_minutes: int | None = field(
        default=UNSET,
        description="How long a freed place is offered; null books it for the next outright.",
    )

    def changes(self) -> dict[str, Any]:
        """The given fields by their names in the domain. Errors: BAD_USER_INPUT."""
        named = {
            "title": self.title,
            "start": self.start_time,
            "end": self.end_time,
            "capacity": self.capacity,
            "time_zone": self.time_zone,
            "location": self.location,
            "kind": self.kind,
            "hold_minutes": self.hold_minutes,
            "cutoff_minutes": self.cancel_cutoff_minutes,
            "waitlist_capacity": self.waitlist_capacity,
            "offer_minutes": self.waitlist_offer_minutes,
        }
        given = {name: value for name, value in named.items() if value is not UNSET}
        if any(value is None and name not in NULLABLE for name, value in given.items()):
            raise RefusedError(
                Code.BAD_USER_INPUT,
                "Of a slot's fields only `location` and `waitlistOfferMinutes` can be null.",
            )
        return given


CreateSlotResult = Annotated[
    Slot | InvalidInput,
    strawberry.union("CreateSlotResult", description="What came of creating a slot."),
]
UpdateSlotResult = Annotated[
    Slot | InvalidInput | SlotNotFound | SlotCancelled | CapacityBelowTaken | Locked,
    strawberry.union("UpdateSlotResult", description="What came of changing a slot."),
]

SlotIdArgument = Annotated[strawberry.ID, argument(description="The slot.")]


@strawberry.type
class SlotMutations:
    @field(description="Create a slot. Organisers only.")
    async def create_slot(
        self,
        info: Info,
        input: Annotated[CreateSlotInput, argument(description="The slot.")],  # noqa: A002
    ) -> CreateSlotResult:
        organiser = info.context.organiser
        draft = SlotDraft(
            title=input.title,
            start=input.start_time,
            end=input.end_time,
            time_zone=input.time_zone,
            capacity=input.capacity,
            location=input.location,
            kind=input.kind,
            published=not input.draft,
            hold_minutes=input.hold_minutes,
            cutoff_minutes=input.cancel_cutoff_minutes,
            waitlist_capacity=input.waitlist_capacity,
            offer_minutes=input.waitlist_offer_minutes,
            choice=input.choice,
        )
        outcome = await keeping.create(info.context.desk, draft)
        if isinstance(outcome, refused.InvalidInput):
            return InvalidInput.of(outcome)
        return Slot.of(outcome.slot, organiser)

    @field(description="Change a slot. Organisers only.")
    async def update_slot(
        self,
        info: Info,
        input: Annotated[UpdateSlotInput, argument(description="The changes.")],  # noqa: A002
    ) -> UpdateSlotResult:
        organiser = info.context.organiser
        slot_id = ids.slot_id_of(input.slot_id)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        desk, changes = info.context.desk, input.changes()
        return _kept(await keeping.edit(desk, slot_id, changes, organiser.user_id), organiser)

    @field(description="Open a draft to everyone. Organisers only.")
    async def publish_slot(self, info: Info, slot_id: SlotIdArgument) -> UpdateSlotResult:
        organiser = info.context.organiser
        found = ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        desk = info.context.desk
        return _kept(await keeping.publish(desk, found, organiser.user_id), organiser)

    @field(description="Call a slot off for everyone. Organisers only.")
    async def cancel_slot(self, info: Info, slot_id: SlotIdArgument) -> UpdateSlotResult:
        organiser = info.context.organiser
        found = ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        desk = info.context.desk
        return _kept(await keeping.call_off(desk, found, organiser.user_id), organiser)


def _kept(outcome: outcomes.KeepOutcome, organiser: Caller) -> UpdateSlotResult:
    match outcome:
        case outcomes.SlotKept():
            return Slot.of(outcome.slot, organiser)
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case refused.SlotNotFound():
            return SlotNotFound.of(ids.slot_gid(outcome.slot_id))
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, organiser))
        case refused.CapacityBelowTaken():
            return CapacityBelowTaken.of(Slot.of(outcome.slot, organiser))
        case refused.Locked():
            return Locked.of(outcome)
        case _:
            assert_never(outcome)
