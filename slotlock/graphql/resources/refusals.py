"""Refusals about resources."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.resources import resource
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode, RefusalWithoutDetails


@strawberry.type(description="The resource does not exist.")
class ResourceNotFound(RefusalWithoutDetails):
    CODE = RefusalCode.RESOURCE_NOT_FOUND
    MESSAGE = "This resource does not exist."


@strawberry.type(description="Slots that are not over use the resource, so it cannot be deleted.")
class ResourceInUse(Refusal):
    slot_ids: list[strawberry.ID] = field(description="The ids of at most ten of these slots.")

    @classmethod
    def from_domain(cls, outcome: resource.ResourceInUse) -> Self:
        """Show some of the slots that use the resource."""
        return cls(
            code=RefusalCode.RESOURCE_IN_USE,
            message="Slots that are not over use this resource.",
            slot_ids=[slot_global_id(slot_id) for slot_id in outcome.slot_ids],
        )
