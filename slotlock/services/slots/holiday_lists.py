"""Use cases of holiday lists: create, change, delete and find them."""

from collections.abc import Sequence

from slotlock.domain.schedule.holidays import (
    CreateHolidayListOutcome,
    DeleteHolidayListOutcome,
    Holiday,
    HolidayList,
    HolidayListDeleted,
    HolidayListId,
    HolidayListNotFound,
    HolidayListSaved,
    UpdateHolidayListOutcome,
    build_list,
)
from slotlock.domain.shared.pagination import MAX_COUNT, exact_count
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_holiday_list_id
from slotlock.services.container import Services

NAME_TAKEN = InvalidInput((FieldProblem("name", ProblemCode.NAME_TAKEN.problem()),))


async def create(
    services: Services, name: str, holidays: Sequence[Holiday], organizer_id: UserId
) -> CreateHolidayListOutcome:
    """Create a list. Its name differs from all others in more than capitals."""
    built = build_list(new_holiday_list_id(), name, holidays)
    if isinstance(built, InvalidInput):
        return built
    inserted = await services.holiday_lists.insert(built, organizer_id, services.now())
    return HolidayListSaved(built) if inserted else NAME_TAKEN


async def update(
    services: Services,
    list_id: HolidayListId,
    name: str | None,
    holidays: Sequence[Holiday] | None,
    organizer_id: UserId,
) -> UpdateHolidayListOutcome:
    """Change the name or all holidays of a list; None leaves them as they are.

    Slots that were created with the list stay as they are.
    """
    before = await services.holiday_lists.find(list_id)
    if before is None:
        return HolidayListNotFound()
    built = build_list(
        list_id,
        before.name if name is None else name,
        before.holidays if holidays is None else holidays,
    )
    if isinstance(built, InvalidInput):
        return built
    # The other field may have another value in the meantime.
    given = {"name": name, "holidays": holidays}
    fields = [field for field, value in given.items() if value is not None]
    if not fields:
        return HolidayListSaved(before)
    updated = await services.holiday_lists.update(built, fields, organizer_id, services.now())
    if isinstance(updated, HolidayList):
        return HolidayListSaved(updated)
    return NAME_TAKEN if updated else HolidayListNotFound()


async def delete(
    services: Services, list_id: HolidayListId, organizer_id: UserId
) -> DeleteHolidayListOutcome:
    """Delete a list. Slots that were created with it stay as they are."""
    deleted = await services.holiday_lists.delete(list_id, organizer_id, services.now())
    return HolidayListDeleted(list_id) if deleted else HolidayListNotFound()


async def count(services: Services) -> int | None:
    """Return how many lists there are; None for more than `MAX_COUNT`."""
    return exact_count(await services.holiday_lists.count(MAX_COUNT + 1))
