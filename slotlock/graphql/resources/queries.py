"""Queries that list and find resources."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.resources import resource
from slotlock.domain.shared.text import validate_line
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
from slotlock.services import resources

RESOURCES_CURSOR = "resources"
# A key has up to three characters for each of a name, and the name itself after a zero character.
MAX_KEY_LENGTH = 4 * resource.MAX_NAME_LENGTH
ResourceConnection = Connection[Resource]


@strawberry.type
class ResourceQueries:
    @field(description="Resources by name. Organizers only.")
    async def resources(
        self,
        info: Info,
        text: Annotated[
            str | None,
            argument(
                description="Only resources whose name contains this text. Capitals, accents and "
                "variants of characters do not matter."
            ),
        ] = None,
        kind: Annotated[
            ResourceKind | None, argument(description="Only resources of this kind.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> ResourceConnection:
        info.context.require_organizer()
        if problem := validate_line(text or "", resource.MAX_NAME_LENGTH):
            raise bad_input("text", f"`text`: {problem}")
        services, name_part = info.context.services, text or ""
        page = await resources.list_resources(
            services, name_part, kind, require_valid_first(first), _decode(after)
        )
        items = [
            (encode_cursor(RESOURCES_CURSOR, key), Resource.from_domain(each))
            for key, each in page.items
        ]
        return ResourceConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(resources.count_resources, services, name_part, kind),
        )

    @field(description="A resource by id, or null if there is none. Organizers only.")
    async def resource(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the resource.")],  # noqa: A002
    ) -> Resource | None:
        info.context.require_organizer()
        return await load_resource(info, id)


async def load_resource(info: Info, global_id: str) -> Resource | None:
    """Load a resource by its global id."""
    name = ids.parse_resource_id(global_id)
    found = await resources.find(info.context.services, name) if name else None
    return Resource.from_domain(found) if found else None


def _decode(after: str | None) -> str | None:
    if after is None:
        return None
    match decode_cursor(RESOURCES_CURSOR, after):
        case [str(key)] if key and not validate_line(key.replace("\0", ""), MAX_KEY_LENGTH):
            return key
        case _:
            raise bad_input("after", "This is not a cursor of this list.")
