"""Lists of holidays as organizers see and change them."""

import asyncio
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.schedule import holidays
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_NAME, ListCursors
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.outcomes import Result, ResultView, register_type, register_value
from slotlock.services.slots import holiday_lists


@strawberry.type(description="Days on which a school has no meetings.")
class Holiday:
    first: date = field(description="The first day.")
    last: date = field(description="The last day.")
    name: str = field(description="The name; empty without one.")


@strawberry.type(
    description="A named list of holidays, such as those of a school year, for series and courses."
)
class HolidayList(Node):
    name: str = field(description="The name. No other list has it.")
    holidays: list[Holiday] = field(description="The holidays by date, at most 500.")


def show_list(shown: holidays.HolidayList) -> HolidayList:
    """Return what organizers see of a list."""
    days = [Holiday(first=each.first, last=each.last, name=each.name) for each in shown.holidays]
    return HolidayList(id=ids.holiday_list_global_id(shown.id), name=shown.name, holidays=days)


register_value(
    holidays.ShownHolidayListId,
    strawberry.ID,
    lambda id_, _outcome, _view: ids.holiday_list_global_id(id_),
)
register_type(
    holidays.HolidayListSaved,
    HolidayList,
    lambda saved, _view: show_list(saved.holiday_list),
)

CREATE_LIST = Result[holidays.CreateHolidayListOutcome](
    "CreateHolidayListResult", "The new list, or a refusal."
)
UPDATE_LIST = Result[holidays.UpdateHolidayListOutcome](
    "UpdateHolidayListResult", "The changed list, or a refusal."
)
DELETE_LIST = Result[holidays.DeleteHolidayListOutcome](
    "DeleteHolidayListResult", "What was deleted, or a refusal."
)
LISTS = ListCursors("holidayLists", BY_NAME, lambda found: found[0])
HolidayListConnection = Connection[HolidayList]


@strawberry.input(description="Days on which a school has no meetings.")
class HolidayInput:
    first: date = field(description="The first day.")
    last: date | None = field(
        default=None, description="The last day, at most 366 days later; the first one by default."
    )
    name: str = field(default="", description="The name, at most 100 characters.")

    def to_domain(self) -> holidays.Holiday:
        """Convert the holiday to the domain's."""
        return holidays.Holiday(self.first, self.last or self.first, self.name)


ICS_DESCRIPTION = (
    "The holidays as the text of an iCalendar file, of at most 200,000 characters, instead of "
    "`holidays`. Each event is one, and none of them may repeat. Send a long file over HTTP: "
    "a message of a socket has at most 64 kB."
)


@strawberry.input(description="The list of holidays to create.")
class CreateHolidayListInput:
    name: str = field(
        description="The name, 1 to 100 characters. It differs from other names in more than "
        "capitals."
    )
    holidays: list[HolidayInput] | None = field(default=None, description="The holidays, 1 to 500.")
    ics: str | None = field(default=None, description=ICS_DESCRIPTION)


@strawberry.input(description="The changes to a list of holidays. Slots stay as they are.")
class UpdateHolidayListInput:
    holiday_list_id: strawberry.ID = field(description="The list to change.")
    name: str | None = field(default=None, description="The new name; null for the present one.")
    holidays: list[HolidayInput] | None = field(
        default=None,
        description="All holidays of the list from now on, 1 to 500; null for the present ones.",
    )
    ics: str | None = field(default=None, description=ICS_DESCRIPTION)


@strawberry.type
class HolidayListQueries:
    @field(description="Lists of holidays by name. Organizers only.")
    async def holiday_lists(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> HolidayListConnection:
        info.context.require_organizer()
        services = info.context.services
        return HolidayListConnection.of_page(
            await services.holiday_lists.page(*page_start(LISTS, first, after)),
            lambda found: show_list(found[1]),
            LISTS,
            after,
            partial(holiday_lists.count, services),
        )


@strawberry.type
class HolidayListMutations:
    @CREATE_LIST.mutation("Create a list of holidays. Organizers only.")
    async def create_holiday_list(
        self,
        info: Info,
        input: Annotated[CreateHolidayListInput, argument(description="The list to create.")],
    ) -> object:
        viewer = info.context.require_organizer()
        read = await _read_holidays(input.holidays, input.ics)
        if isinstance(read, InvalidInput):
            return CREATE_LIST.present(read, ResultView(viewer))
        outcome = await holiday_lists.create(
            info.context.services, input.name, read or (), viewer.user_id
        )
        return CREATE_LIST.present(outcome, ResultView(viewer))

    @UPDATE_LIST.mutation("Change a list of holidays. Organizers only.")
    async def update_holiday_list(
        self,
        info: Info,
        input: Annotated[UpdateHolidayListInput, argument(description="The changes.")],
    ) -> object:
        viewer = info.context.require_organizer()
        list_id = ids.parse_holiday_list_id(input.holiday_list_id)
        read = await _read_holidays(input.holidays, input.ics)
        if list_id is None:
            return UPDATE_LIST.present(holidays.HolidayListNotFound(), ResultView(viewer))
        if isinstance(read, InvalidInput):
            return UPDATE_LIST.present(read, ResultView(viewer))
        outcome = await holiday_lists.update(
            info.context.services, list_id, input.name, read, viewer.user_id
        )
        return UPDATE_LIST.present(outcome, ResultView(viewer))

    @DELETE_LIST.mutation("Delete a list of holidays. Slots stay as they are. Organizers only.")
    async def delete_holiday_list(
        self,
        info: Info,
        holiday_list_id: Annotated[strawberry.ID, argument(description="The list to delete.")],
    ) -> object:
        viewer = info.context.require_organizer()
        if (list_id := ids.parse_holiday_list_id(holiday_list_id)) is None:
            return DELETE_LIST.present(holidays.HolidayListNotFound(), ResultView(viewer))
        outcome = await holiday_lists.delete(info.context.services, list_id, viewer.user_id)
        return DELETE_LIST.present(outcome, ResultView(viewer))


async def _read_holidays(
    given: Sequence[HolidayInput] | None, ics: str | None
) -> tuple[holidays.Holiday, ...] | InvalidInput | None:
    """Return the holidays of an input; None if it has none. Errors: BAD_USER_INPUT for both."""
    if given is not None and ics is not None:
        raise bad_input("ics", "Please send either `holidays` or `ics`.")
    if ics is not None:
        # Few requests have such a file, and the import takes longer than one.
        from slotlock.domain.schedule.holiday_files import parse_ics

        return await asyncio.to_thread(parse_ics, ics)
    return None if given is None else tuple(each.to_domain() for each in given)


async def load_holidays(info: Info, global_id: str | None) -> frozenset[date] | InvalidInput:
    """Return the days of the list that an input names; none without a list."""
    if global_id is None:
        return frozenset()
    list_id = ids.parse_holiday_list_id(global_id)
    found = list_id and await info.context.services.holiday_lists.find(list_id)
    if not found:
        problem = FieldProblem("holidayListId", ProblemCode.UNKNOWN_HOLIDAY_LIST.problem())
        return InvalidInput((problem,))
    return found.dates


async def load_holiday_list(info: Info, list_id: holidays.HolidayListId) -> HolidayList | None:
    """Load a list for an organizer."""
    if not info.context.caller.is_organizer:
        return None
    found = await info.context.services.holiday_lists.find(list_id)
    return show_list(found) if found else None
