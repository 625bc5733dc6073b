"""Deleting slots that nobody has booked or waited for, one or several of a series."""

from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.audit.audit_notes import AuditNote, note_slot_deletion
from slotlock.domain.booking.availability import after_deletion, to_availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.editing import delete_slots
from slotlock.domain.slots.series import SeriesScope
from slotlock.domain.slots.slot_outcomes import DeleteSlotOutcome, SlotsDeleted
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, check_written
from slotlock.services.commands.commit import locked_refusal
from slotlock.services.container import Services
from slotlock.services.slots.editing import load_slots_in_scope


async def delete(
    services: Services, slot_id: SlotId, organizer_id: UserId, scope: SeriesScope = SeriesScope.THIS
) -> CommandResult[DeleteSlotOutcome]:
    """Delete a slot, with a wider scope other slots of its series too, all or none.

    Like an edit, the write depends on the versions of the slots and takes no lock: a booking that
    is written first prevents it, and one that comes later finds no slot.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    for _ in attempts():
        now = services.now()
        slots = await load_slots_in_scope(services, slot_id, scope, now)
        if not slots:
            return CommandResult(SlotNotFound(slot_id))
        # After the slots: a booking that ends later gives its slot a new version.
        used = await services.ended_bookings.find_slots_with_history([slot.id for slot in slots])
        outcome = delete_slots(slots, used)
        if not isinstance(outcome, SlotsDeleted):
            return CommandResult(outcome, {slot.id: as_of(slot, now) for slot in slots})
        changes = WriteSet(
            (),
            deleted_slots=tuple(slots),
            audit_notes=deletion_notes(slots, organizer_id, now),
        )
        if check_written(await services.slot_writer.commit(changes)):
            publish_deletions(services, slots, now)
            return CommandResult(outcome)
    return CommandResult(locked_refusal(slot_id))


def deletion_notes(
    slots: Sequence[SlotState], organizer_id: UserId, now: datetime
) -> tuple[AuditNote, ...]:
    """Return the audit notes for slots that are deleted."""
    return tuple(
        note_slot_deletion(slot.slot, organizer_id, max(now, slot.changed_at)) for slot in slots
    )


def publish_deletions(services: Services, slots: Sequence[SlotState], now: datetime) -> None:
    """Notify the subscribers of slots, which were deleted, in all processes."""
    for slot in slots:
        last = after_deletion(to_availability(slot), max(now, slot.changed_at))
        services.availability.publish(last)
        services.slot_events.publish(last)
