"""Queries that list and find resources, and when they are busy."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.resources import resource
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_cursor, encode_cursor
from slotlock.graphql.core.enums import ResourceKind
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.resources.types import Resource
from slotlock.graphql.slots.types import Slot, load_slot
from slotlock.services import resources

RESOURCES_CURSOR = "resources"
ResourceConnection = Connection[Resource]


@strawberry.type(description="A time at which a published slot occupies a resource.")
class BusySpan:
    _slot_id: strawberry.Private[SlotId]
    start_time: datetime = field(description="When the meeting starts.")
    end_time: datetime = field(description="When the meeting ends.")

    @field(description="The slot; null if it was deleted meanwhile.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self._slot_id)


@strawberry.type(description="When published slots occupy a resource.")
class ResourceBusy:
    resource: Resource = field(description="The resource.")
    spans: list[BusySpan] = field(
        description="The meetings that overlap the period, by start, at most 1000."
    )
    is_complete: bool = field(description="Whether these are all. If not, ask for less time.")


@strawberry.type
class ResourceQueries:
    @field(description="Resources by name. Organizers only.")
    async def resources(
        self,
        info: Info,
        text: Annotated[
            str | None, argument(description="Only resources whose name contains this text.")
        ] = None,
        kind: Annotated[
            ResourceKind | None, argument(description="Only resources of this kind.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> ResourceConnection:
        info.context.require_organizer()
        if len(text or "") > resource.MAX_NAME_LENGTH:
            raise bad_input("text", "`text` has at most 100 characters.")
        page = await resources.list_resources(
            info.context.services, text or "", kind, require_valid_first(first), _decode(after)
        )
        items = [
            (encode_cursor(RESOURCES_CURSOR, key), Resource.from_domain(each))
            for key, each in page.items
        ]
        return ResourceConnection.from_items(items, has_more=page.has_more, after=after)

    @field(description="A resource by id, or null if there is none. Organizers only.")
    async def resource(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the resource.")],  # noqa: A002
    ) -> Resource | None:
        info.context.require_organizer()
        return await load_resource(info, id)

    @field(
        description="When published slots occupy each of the resources, in the order of the ids. "
        "Organizers only."
    )
    async def free_busy(
        self,
        info: Info,
        resource_ids: Annotated[
            list[strawberry.ID], argument(description="The resources, at most 50.")
        ],
        from_: Annotated[
            datetime, argument(name="from", description="The beginning of the period.")
        ],
        until: Annotated[
            datetime,
            argument(description="The end of the period, at most 92 days after its beginning."),
        ],
    ) -> list[ResourceBusy]:
        info.context.require_organizer()
        if len(resource_ids) > resource.MAX_FREE_BUSY_RESOURCES:
            raise bad_input("resourceIds", "`resourceIds` has at most 50 items.")
        problem = resource.validate_period(from_, until)
        if problem is not None:
            raise bad_input("until", problem.problems[0].message)
        names = [ids.parse_resource_id(each) for each in resource_ids]
        found = await info.context.loaders.resources.load_many(
            [name for name in names if name is not None]
        )
        known = {each.name for each in found if each is not None}
        wanted = [name for name in names if name is not None and name in known]
        if len(wanted) < len(names):
            raise bad_input("resourceIds", "There is no such resource.")
        busy = await resources.find_busy(info.context.services, wanted, from_, until)
        return [
            ResourceBusy(
                resource=Resource.for_name(each.name),
                spans=[
                    BusySpan(
                        _slot_id=span.slot_id,
                        start_time=span.meeting.start,
                        end_time=span.meeting.end,
                    )
                    for span in each.spans
                ],
                is_complete=each.is_complete,
            )
            for each in busy
        ]


async def load_resource(info: Info, global_id: str) -> Resource | None:
    """Load a resource by its global id."""
    name = ids.parse_resource_id(global_id)
    found = await resources.find(info.context.services, name) if name else None
    return Resource.from_domain(found) if found else None


def _decode(after: str | None) -> str | None:
    if after is None:
        return None
    match decode_cursor(RESOURCES_CURSOR, after):
        case [str(key)]:
            return key
        case _:
            raise bad_input("after", "This is not a cursor of this list.")
