"""What an import of courses changes, and which of its changes conflict with other slots."""

from collections.abc import Collection, Mapping, Sequence

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.slot_files.slot_file import SlotFile, add_problem
from slotlock.domain.slots.resource_conflicts import ResourceUsage
from slotlock.domain.slots.slot_patch import SlotPatch


@value_object
class CampaignSlots:
    """What a file changes: a campaign with its slots, their descriptions and all resources.

    `resources` has those of the slots and of the file, each by the name that was asked for, and
    `resource_names` are compared with an unknown one.
    """

    terms: CampaignTerms
    slots: Mapping[SlotId, SlotState]
    descriptions: Mapping[str, str]
    resources: Mapping[str, Resource]
    resource_names: Collection[str] = ()


@value_object
class ImportOptions:
    """The zone of new courses without one, and whether unknown names become resources."""

    time_zone: str
    creates_resources: bool = False


@value_object
class SlotFilePlan:
    """What an import writes: new drafts, and changes of slots as these are afterwards.

    `lines` has the line of each of these slots, and `changed` the columns that change one.
    """

    created: tuple[SlotState, ...]
    patches: Mapping[SlotId, SlotPatch]
    edited: Mapping[SlotId, SlotState]
    unchanged: int
    not_in_file: int
    new_resources: tuple[Resource, ...]
    lines: Mapping[SlotId, int]
    changed: Mapping[SlotId, tuple[str, ...]]

    @property
    def is_empty(self) -> bool:
        """Return whether the import has nothing to write."""
        return not (self.created or self.patches)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers that the import gives."""
        slots = (*self.created, *self.edited.values())
        return tuple(sorted({each.slot.number for each in slots if each.slot.number}))


@value_object
class SlotsImported:
    """What the import of a file wrote, or would write in a dry run."""

    plan: SlotFilePlan
    file: SlotFile
    dry_run: bool


def conflict_problems(
    file: SlotFile,
    plan: SlotFilePlan,
    rivals: Sequence[SlotState],
    deleted: Collection[str] = (),
) -> InvalidFile | None:
    """Return the problems of slots whose resources are deleted, or used by another slot then.

    `rivals` are the slots of others that use the resources.
    """
    others = [each for each in rivals if each.id not in plan.edited]
    usage = ResourceUsage.from_slots((*others, *plan.edited.values()))
    problems = file.new_collector()
    for slot_id, after in plan.edited.items():
        line = plan.lines[slot_id]
        for name in sorted({*deleted}.intersection(after.slot.resources)):
            unknown = ProblemCode.UNKNOWN_RESOURCE.problem(name=name)
            add_problem(problems, line, "resources", unknown)
        if taken := usage.conflict_with(after.slot):
            title, name = taken.other.slot.title, taken.resource
            problem = SlotFileProblem.RESOURCE_TAKEN.problem(slot=title, name=name)
            add_problem(problems, line, "resources", problem)
    return problems.to_invalid_file() if problems.count else None
