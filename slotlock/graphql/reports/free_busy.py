"""The query for the times at which slots occupy resources."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.resources import resource
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.resources.resource_queries import Resource
from slotlock.graphql.slots.slot_types import Slot, load_slot


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
    resource: Resource = field(description="The resource that the meetings occupy.")
    spans: list[BusySpan] = field(
        description="The meetings that overlap the period, by start, at most 1000."
    )
    is_complete: bool = field(description="Whether these are all. If not, ask for less time.")


@strawberry.type
class FreeBusyQueries:
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
        require_valid_period("from", from_, "until", until)
        if until - from_ > resource.MAX_FREE_BUSY_TIME:
            days = resource.MAX_FREE_BUSY_TIME.days
            raise bad_input("until", f"Please ask for at most {days} days.")
        names = [ids.parse_resource_id(each) for each in resource_ids]
        found = await info.context.loaders.resources.load_many(
            [name for name in names if name is not None]
        )
        wanted = [each.name for each in found if each is not None]
        if len(wanted) < len(names):
            raise bad_input("resourceIds", "There is no such resource.")
        busy = await info.context.services.resources.find_busy(wanted, from_, until)
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
