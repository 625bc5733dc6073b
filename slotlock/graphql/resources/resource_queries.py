"""Resources as clients see them, and the queries that list and find them."""

from functools import partial
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.resources import resource
from slotlock.domain.shared.text import validate_line
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_NAME, ListCursors
from slotlock.graphql.core.enums import ResourceKind
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import resource_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.outcomes import register_value
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services import resources


@strawberry.type(
    description="A room, a teacher or something else that only one published slot can occupy at a "
    "time."
)
class Resource(Node):
    name: str = field(description="The name. No other resource has it.")
    _found: strawberry.Private[resource.Resource | None] = None

    @field(description="What the resource is.")
    async def kind(self, info: Info) -> ResourceKind:
        found = self._found or await info.context.loaders.resources.load(self.name)
        return found.kind if found else ResourceKind.OTHER

    @field(
        description="The account of a member of the staff. The user leads the slots of the "
        "resource (`Slot.isLedByMe`). Only organizers see them; null for others."
    )
    async def leader(self, info: Info) -> User | None:
        viewer = info.context.viewer
        if viewer is None or not viewer.is_organizer:
            return None
        found = self._found or await info.context.loaders.resources.load(self.name)
        return await load_referenced_user(info, found.leader) if found and found.leader else None

    @classmethod
    def from_domain(cls, resource: resource.Resource) -> Self:
        return cls(id=resource_global_id(resource.name), name=resource.name, _found=resource)

    @classmethod
    def for_name(cls, name: str) -> Self:
        """Show the resource that a slot names. Its kind and its leader are loaded if selected."""
        return cls(id=resource_global_id(name), name=name)


register_value(
    resource.ResourceName, strawberry.ID, lambda name, _outcome, _view: resource_global_id(name)
)


RESOURCES = ListCursors("resources", BY_NAME, lambda found: found[0])
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
        start = page_start(RESOURCES, first, after)
        page = await services.resources.page(name_part, kind, *start)
        return ResourceConnection.of_page(
            page,
            lambda found: Resource.from_domain(found[1]),
            RESOURCES,
            after,
            partial(resources.count_resources, services, name_part, kind),
        )

    @field(description="A resource by id, or null if there is none. Organizers only.")
    async def resource(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the resource.")],
    ) -> Resource | None:
        info.context.require_organizer()
        return await load_resource(info, id)


async def load_resource(info: Info, global_id: str) -> Resource | None:
    """Load a resource by its global id."""
    name = ids.parse_resource_id(global_id)
    found = await resources.find(info.context.services, name) if name else None
    return Resource.from_domain(found) if found else None
