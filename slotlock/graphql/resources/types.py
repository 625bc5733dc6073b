"""Resources as clients see them."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.resources import resource
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import ResourceKind
from slotlock.graphql.core.ids import resource_global_id
from slotlock.graphql.core.node import Node


@strawberry.type(
    description="A room, a teacher or something else that only one published slot can occupy at a "
    "time."
)
class Resource(Node):
    name: str = field(description="The name, which never changes. No other resource has it.")
    _kind: strawberry.Private[resource.ResourceKind | None] = None

    @field(description="What the resource is.")
    async def kind(self, info: Info) -> ResourceKind:
        if self._kind is not None:
            return self._kind
        found = await info.context.loaders.resources.load(self.name)
        return found.kind if found else ResourceKind.OTHER

    @classmethod
    def from_domain(cls, resource: resource.Resource) -> Self:
        """Show a resource."""
        return cls(id=resource_global_id(resource.name), name=resource.name, _kind=resource.kind)

    @classmethod
    def for_name(cls, name: str) -> Self:
        """Show the resource that a slot names. Its kind is loaded if it is selected."""
        return cls(id=resource_global_id(name), name=name)
