"""Mutations with which organizers create, change, delete and import resources."""

from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.resources import resource
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import ResourceKind
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import Result, ResultView, register_type
from slotlock.graphql.resources.resource_queries import Resource
from slotlock.services import resources

register_type(resource.Resource, Resource, lambda value, _view: Resource.from_domain(value))

register_type(
    resource.ResourceSaved, Resource, lambda saved, _view: Resource.from_domain(saved.resource)
)

CREATE_RESOURCE = Result[resource.CreateResourceOutcome](
    "CreateResourceResult", "The new resource, or a refusal."
)
UPDATE_RESOURCE = Result[resource.UpdateResourceOutcome](
    "UpdateResourceResult", "The changed resource, or a refusal."
)
DELETE_RESOURCE = Result[resource.DeleteResourceOutcome](
    "DeleteResourceResult", "What was deleted, or a refusal."
)
IMPORT_RESOURCES = Result[resource.ImportResourcesOutcome](
    "ImportResourcesResult", "The resources, or a refusal."
)


LEADER_DESCRIPTION = (
    "The account of the member of the staff: the user leads the slots of the resource, reads their "
    "rosters and records the attendance. Only a resource of the kind `STAFF` has one."
)
# Stands for a malformed id. No user ever gets it.
UNKNOWN_USER_ID = UserId("0" * 24)


def _parse_leader(global_id: strawberry.ID | None) -> UserId | None:
    return None if global_id is None else ids.parse_user_id(global_id) or UNKNOWN_USER_ID


@strawberry.input(description="The resource to create.")
class CreateResourceInput:
    name: str = field(
        description="The name, 1 to 100 characters. It differs from other names in more than "
        "capitals."
    )
    kind: ResourceKind = field(default=ResourceKind.OTHER, description="What the resource is.")
    leader_id: strawberry.ID | None = field(default=None, description=LEADER_DESCRIPTION)


@strawberry.input(description="The changes to a resource.")
class UpdateResourceInput:
    resource_id: strawberry.ID = field(description="The resource to change.")
    kind: ResourceKind | None = field(
        default=None, description="What the resource is; null leaves it as it is."
    )
    name: str | None = field(
        default=None,
        description="The new name, as for `createResource`; null leaves it as it is. All slots "
        "show it. The id changes with the name, and the old id still finds the resource.",
    )
    leader_id: strawberry.ID | None = field(
        default=UNSET, description=f"{LEADER_DESCRIPTION} Null removes it; left out, it stays."
    )


@strawberry.type
class ResourceMutations:
    @CREATE_RESOURCE.mutation("Create a resource. Organizers only.")
    async def create_resource(
        self,
        info: Info,
        input: Annotated[CreateResourceInput, argument(description="The resource to create.")],
    ) -> object:
        viewer = info.context.require_organizer()
        created = resource.Resource(input.name, input.kind, _parse_leader(input.leader_id))
        outcome = await resources.create(info.context.services, created, viewer.user_id)
        return CREATE_RESOURCE.present(outcome, ResultView(viewer))

    @UPDATE_RESOURCE.mutation(
        "Rename a resource, or change what it is or who leads its slots. Organizers only."
    )
    async def update_resource(
        self,
        info: Info,
        input: Annotated[UpdateResourceInput, argument(description="The changes.")],
    ) -> object:
        viewer = info.context.require_organizer()
        if (name := ids.parse_resource_id(input.resource_id)) is None:
            return UPDATE_RESOURCE.present(resource.ResourceNotFound(), ResultView(viewer))
        leader = UNCHANGED if input.leader_id is UNSET else _parse_leader(input.leader_id)
        outcome = await resources.update(
            info.context.services, name, input.name, input.kind, leader, viewer.user_id
        )
        return UPDATE_RESOURCE.present(outcome, ResultView(viewer))

    @DELETE_RESOURCE.mutation(
        "Delete a resource that only slots use which are over or cancelled. Organizers only."
    )
    async def delete_resource(
        self,
        info: Info,
        resource_id: Annotated[strawberry.ID, argument(description="The resource to delete.")],
    ) -> object:
        viewer = info.context.require_organizer()
        if (name := ids.parse_resource_id(resource_id)) is None:
            return DELETE_RESOURCE.present(resource.ResourceNotFound(), ResultView(viewer))
        outcome = await resources.delete(info.context.services, name, viewer.user_id)
        return DELETE_RESOURCE.present(outcome, ResultView(viewer))

    @IMPORT_RESOURCES.mutation(
        "Create those resources of a list of names that do not exist yet. Repeating it "
        "changes nothing. Organizers only."
    )
    async def import_resources(
        self,
        info: Info,
        names: Annotated[list[str], argument(description="The names, at most 500.")],
        kind: Annotated[
            ResourceKind, argument(description="What the new resources are.")
        ] = ResourceKind.OTHER,
        dry_run: Annotated[
            bool, argument(description="Whether to report only, and to create nothing.")
        ] = False,
    ) -> object:
        viewer = info.context.require_organizer()
        if len(names) > resource.MAX_IMPORTED_NAMES:
            raise bad_input("names", f"`names` has at most {resource.MAX_IMPORTED_NAMES} items.")
        outcome = await resources.import_names(
            info.context.services, names, kind, viewer.user_id, dry_run=dry_run
        )
        return IMPORT_RESOURCES.present(outcome, ResultView(viewer))
