"""Use cases of resources: create, change, delete, import and find them, and when they are busy."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slotlock.domain.audit.audit_notes import note_resource_change
from slotlock.domain.booking.slot import Slot
from slotlock.domain.resources.resource import (
    CreateResourceOutcome,
    DeleteResourceOutcome,
    ImportResourcesOutcome,
    LeaderRefusal,
    Resource,
    ResourceDeleted,
    ResourceInUse,
    ResourceKind,
    ResourceNotFound,
    ResourceSaved,
    ResourcesImported,
    UpdateResourceOutcome,
    leader_refusal,
    name_key,
    unknown_resource,
    validate_kind,
    validate_name,
)
from slotlock.domain.shared.pagination import MAX_COUNT, exact_count
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.slots.listing import SlotFilter
from slotlock.domain.slots.slot_patch import SlotDraft, SlotPatch
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.resource_repository import DuplicateNameError
from slotlock.infrastructure.mongo.slots.write_set import ResourceVersion
from slotlock.services.container import Services


async def create(
    services: Services, resource: Resource, organizer_id: UserId
) -> CreateResourceOutcome:
    """Create a resource. Its name differs from all others in more than capitals."""
    resource = replace(resource, name=normalize_line(resource.name))
    if refusal := _invalid(resource) or await _leader_refusal(services, resource.leader):
        return refusal
    if not await _insert(services, resource, organizer_id):
        return InvalidInput((FieldProblem("name", ProblemCode.NAME_TAKEN.problem()),))
    return ResourceSaved(resource)


def _invalid(resource: Resource) -> InvalidInput | None:
    problems = ("name", validate_name(resource.name)), ("leaderId", validate_kind(resource))
    found = tuple(FieldProblem(field, problem) for field, problem in problems if problem)
    return InvalidInput(found) if found else None


async def _leader_refusal(services: Services, leader: UserId | None) -> LeaderRefusal | None:
    if leader is None:
        return None
    return leader_refusal(leader, (await services.users.find_many([leader])).get(leader))


async def _insert(services: Services, resource: Resource, organizer_id: UserId) -> bool:
    note = note_resource_change(None, resource, organizer_id, services.now())
    return await services.resources.insert(resource, note)


async def update(
    services: Services,
    name: str,
    new_name: str | None,
    kind: ResourceKind | None,
    leader: UserId | Unchanged | None,
    organizer_id: UserId,
) -> UpdateResourceOutcome:
    """Change the name or the kind of a resource, unless they are None, or its leader.

    A new name replaces the old one in all slots, and differs from other names as at a creation.
    """
    before, now = await find(services, name), services.now()
    if before is None:
        return ResourceNotFound()
    after = Resource(
        before.name if new_name is None else normalize_line(new_name),
        kind or before.kind,
        before.leader if isinstance(leader, Unchanged) else leader,
    )
    new_leader = None if after.leader == before.leader else after.leader
    if refusal := _invalid(after) or await _leader_refusal(services, new_leader):
        return refusal
    try:
        changed = (
            await services.resources.update(after, organizer_id, now)
            if after.name == before.name
            else await services.resources.rename(before.name, after, organizer_id, now)
        )
    except DuplicateNameError:
        return InvalidInput((FieldProblem("name", ProblemCode.NAME_TAKEN.problem()),))
    return ResourceSaved(after) if changed else ResourceNotFound()


async def delete(services: Services, name: str, organizer_id: UserId) -> DeleteResourceOutcome:
    """Delete a resource that only slots use which are over or cancelled."""
    resource, now = await find(services, name), services.now()
    if resource is None:
        return ResourceNotFound()
    note = note_resource_change(resource, None, organizer_id, now)
    used_by = await services.resources.delete(resource.name, now, note)
    return ResourceInUse(tuple(used_by)) if used_by else ResourceDeleted(resource.name)


async def import_names(
    services: Services,
    texts: Sequence[str],
    kind: ResourceKind,
    organizer_id: UserId,
    *,
    dry_run: bool,
) -> ImportResourcesOutcome:
    """Create the resources of a list that do not exist yet. A dry run creates nothing."""
    names = list({name_key(text): normalize_line(text) for text in reversed(texts)}.values())[::-1]
    problems = [(name, problem) for name in names if (problem := validate_name(name))]
    if problems:
        parts = (FieldProblem("names", problem.of(repr(name))) for name, problem in problems)
        return InvalidInput(tuple(parts))
    found = await services.resources.find_all(names)
    created = []
    for name in names:
        if name not in found:
            resource = Resource(name, kind)
            if dry_run or await _insert(services, resource, organizer_id):
                created.append(resource)
    return ResourcesImported(tuple(created), tuple(found[name] for name in names if name in found))


async def find(services: Services, name: str) -> Resource | None:
    """Return a resource by its name, or a former one, in this spelling; None if there is none."""
    found = (await services.resources.find_all([name])).get(name)
    # A name that differs in capitals only is another one.
    is_other = found is not None and name != found.name and name_key(name) == name_key(found.name)
    return None if is_other else found


async def count_resources(services: Services, text: str, kind: ResourceKind | None) -> int | None:
    """Return how many resources have a text in their name; None for more than `MAX_COUNT`."""
    return exact_count(await services.resources.count(text, kind, MAX_COUNT + 1))


async def filter_with_resource(services: Services, slot_filter: SlotFilter) -> SlotFilter:
    """Return a filter with the name of its resource in its own spelling, if there is one.

    For the slots that a user leads, it has the names of their resources.
    """
    if (name := slot_filter.resource) is not None:
        found = (await services.resources.find_all([name])).get(name)
        name = name if found is None else found.name
        slot_filter = replace(slot_filter, resource=name)
    if slot_filter.led_by is None:
        return slot_filter
    led = await services.resources.find_led(slot_filter.led_by)
    return replace(slot_filter, led_resources=tuple(each for each in led if name in (None, each)))


async def draft_with_resources(services: Services, draft: SlotDraft) -> SlotDraft | InvalidInput:
    """Return a draft with the names of its resources in their own spelling.

    `several_resources` may have one name, too, if the request named it by its id.
    """
    if draft.resource is None or not normalize_line(draft.resource):
        return draft
    field = "resourceIds" if draft.several_resources else "resource"
    names = await _find_names(services, field, draft.several_resources or (draft.resource,))
    if isinstance(names, InvalidInput):
        return names
    several = names if len(names) > 1 else ()
    return replace(draft, resource=names[0], several_resources=several)


async def changes_with_resources(
    services: Services, changes: SlotPatch
) -> SlotPatch | InvalidInput:
    """Return changes with the names of the new resources in their own spelling.

    `several_resources` may have one name, too, if the request named it by its id.
    """
    if not any(map(normalize_line, changes.new_resources)):
        return changes
    field = "resource" if changes.several_resources is UNCHANGED else "resourceIds"
    names = await _find_names(services, field, changes.new_resources)
    if isinstance(names, InvalidInput):
        return names
    several = names if len(names) > 1 else ()
    return replace(changes, resource=names[0], several_resources=several)


async def find_missing(
    services: Services, slots: Iterable[Slot], versions: Iterable[ResourceVersion]
) -> InvalidInput | None:
    """Return the problem of a resource that slots name and that was deleted, if there is one."""
    missing = {resource.name for resource in versions if resource.version is None}
    for slot in slots if missing else ():
        for name in slot.resources:
            if name in missing:
                names = await services.resources.find_names()
                return unknown_resource(_field_of(slot.resources), name, names)
    return None


def _field_of(names: Sequence[str]) -> str:
    """Return the field of an input that has these names of resources."""
    return "resource" if len(names) == 1 else "resourceIds"


async def _find_names(
    services: Services, field: str, texts: Sequence[str]
) -> tuple[str, ...] | InvalidInput:
    """Return the names of the resources that texts name, or the field's problem."""
    names = list(map(normalize_line, texts))
    found = await services.resources.find_all(names)
    for name in names:
        if name not in found:
            if problem := validate_name(name):
                return InvalidInput((FieldProblem(field, problem),))
            return unknown_resource(field, name, await services.resources.find_names())
    return tuple(dict.fromkeys(found[name].name for name in names))
