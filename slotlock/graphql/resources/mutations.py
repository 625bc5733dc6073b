"""Mutations with which organizers create, change, delete and import resources."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.resources import resource
from slotlock.domain.shared import validation
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import ResourceKind
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import InvalidInput, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.resources.refusals import ResourceInUse, ResourceNotFound
from slotlock.graphql.resources.types import Resource
from slotlock.services import resources


@strawberry.input(description="The resource to create.")
class CreateResourceInput:
    name: str = field(
        description="The name, 1 to 100 characters. It differs from other names in more than "
        "capitals, and never changes."
    )
    kind: ResourceKind = field(default=ResourceKind.OTHER, description="What the resource is.")


@strawberry.input(description="The changes to a resource.")
class UpdateResourceInput:
    resource_id: strawberry.ID = field(description="The resource to change.")
    kind: ResourceKind = field(description="What the resource is.")


@strawberry.type(description="The resource was deleted.")
class ResourceDeleted:
    resource_id: strawberry.ID = field(description="The id of the deleted resource.")


@strawberry.type(description="Every name of the list is the name of a resource now.")
class ResourcesImported:
    created: list[Resource] = field(
        description="The resources that were created, or that a dry run would create."
    )
    existing: list[Resource] = field(description="The resources that existed before.")


CreateResourceResult = Annotated[
    Resource | InvalidInput,
    strawberry.union("CreateResourceResult", description="The new resource, or a refusal."),
]
UpdateResourceResult = Annotated[
    Resource | ResourceNotFound,
    strawberry.union("UpdateResourceResult", description="The changed resource, or a refusal."),
]
DeleteResourceResult = Annotated[
    ResourceDeleted | ResourceInUse | ResourceNotFound,
    strawberry.union("DeleteResourceResult", description="What was deleted, or a refusal."),
]
ImportResourcesResult = Annotated[
    ResourcesImported | InvalidInput,
    strawberry.union("ImportResourcesResult", description="The resources, or a refusal."),
]


@strawberry.type
class ResourceMutations:
    @field(description="Create a resource. Organizers only.", graphql_type=CreateResourceResult)
    async def create_resource(
        self,
        info: Info,
        input: Annotated[CreateResourceInput, argument(description="The resource to create.")],  # noqa: A002
    ) -> Resource | Refusal:
        viewer = info.context.require_organizer()
        outcome = await resources.create(
            info.context.services, input.name, input.kind, viewer.user_id
        )
        if isinstance(outcome, resource.ResourceSaved):
            return Resource.from_domain(outcome.resource)
        return InvalidInput.from_domain(outcome, ResultView(viewer))

    @field(
        description="Change what a resource is. Organizers only.",
        graphql_type=UpdateResourceResult,
    )
    async def update_resource(
        self,
        info: Info,
        input: Annotated[UpdateResourceInput, argument(description="The changes.")],  # noqa: A002
    ) -> Resource | Refusal:
        viewer = info.context.require_organizer()
        name = ids.parse_resource_id(input.resource_id)
        if name is None:
            return ResourceNotFound.create()
        outcome = await resources.update(info.context.services, name, input.kind, viewer.user_id)
        if isinstance(outcome, resource.ResourceSaved):
            return Resource.from_domain(outcome.resource)
        return ResourceNotFound.create()

    @field(
        description="Delete a resource that only slots use which are over or cancelled. Organizers "
        "only.",
        graphql_type=DeleteResourceResult,
    )
    async def delete_resource(
        self,
        info: Info,
        resource_id: Annotated[strawberry.ID, argument(description="The resource to delete.")],
    ) -> ResourceDeleted | Refusal:
        viewer = info.context.require_organizer()
        name = ids.parse_resource_id(resource_id)
        if name is None:
            return ResourceNotFound.create()
        outcome = await resources.delete(info.context.services, name, viewer.user_id)
        if isinstance(outcome, resource.ResourceDeleted):
            return ResourceDeleted(resource_id=resource_id)
        if isinstance(outcome, resource.ResourceInUse):
            return ResourceInUse.from_domain(outcome)
        return ResourceNotFound.create()

    @field(
        description="Create those resources of a list of names that do not exist yet. Repeating it "
        "changes nothing. Organizers only.",
        graphql_type=ImportResourcesResult,
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
    ) -> ResourcesImported | Refusal:
        viewer = info.context.require_organizer()
        if len(names) > resource.MAX_IMPORTED_NAMES:
            raise bad_input("names", f"`names` has at most {resource.MAX_IMPORTED_NAMES} items.")
        outcome = await resources.import_names(
            info.context.services, names, kind, viewer.user_id, dry_run=dry_run
        )
        if isinstance(outcome, validation.InvalidInput):
            return InvalidInput.from_domain(outcome, ResultView(viewer))
        return ResourcesImported(
            created=[Resource.from_domain(each) for each in outcome.created],
            existing=[Resource.from_domain(each) for each in outcome.existing],
        )
