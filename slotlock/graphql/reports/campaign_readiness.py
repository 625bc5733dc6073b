"""What stands in the way before a campaign is published, as organizers see it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.auth.invitations import INVITATION_TTL
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.reports import campaign_readiness, campaign_reports
from slotlock.domain.slots.resource_conflicts import ResourceTaken
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.reports.campaign_report_queries import require_campaign_id
from slotlock.graphql.slots.slot_types import Slot, load_slot
from slotlock.graphql.users.user_queries import User
from slotlock.services.campaigns import reports
from slotlock.services.campaigns.reports import MAX_EXAMPLES


@strawberry.type(description="How many slots have a problem, and the first of them.")
class SlotProblem:
    count: int = field(description="The number of slots.")
    slot_ids: strawberry.Private[tuple[SlotId, ...]]

    @field(description="The first of the slots by start, at most 5.")
    async def examples(self, info: Info) -> list[Slot]:
        found = [await load_slot(info, slot_id) for slot_id in self.slot_ids]
        return [each for each in found if each]

    @classmethod
    def from_domain(cls, slot_ids: Sequence[SlotId]) -> Self:
        return cls(count=len(slot_ids), slot_ids=tuple(slot_ids[:MAX_EXAMPLES]))


@strawberry.type(description="How many users have a problem, and the first of them.")
class UserProblem:
    count: int = field(description="The number of users, at most 100,000.")
    examples: list[User] = field(description="The first of the users by login name, at most 5.")

    @classmethod
    def from_domain(cls, users: campaign_reports.SomeUsers, viewer: Caller) -> Self:
        shown = [User.from_domain(each, viewer) for each in users.examples]
        return cls(count=users.count, examples=shown)


@strawberry.type(description="A draft whose resource another slot uses at that time.")
class ResourceConflict:
    resource: str = field(description="The name of the resource.")
    slot_id: strawberry.Private[SlotId]
    other_id: strawberry.Private[SlotId]

    @field(description="The draft, which cannot be published.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.slot_id)

    @field(description="The slot that uses the resource: a published one, or another draft.")
    async def other(self, info: Info) -> Slot | None:
        return await load_slot(info, self.other_id)

    @classmethod
    def from_domain(cls, draft_id: SlotId, taken: ResourceTaken) -> Self:
        return cls(resource=taken.resource, slot_id=draft_id, other_id=taken.other.id)


@strawberry.type(
    description="What stands in the way before a campaign is published. Cancelled slots do not "
    "count, and only the first 1000 slots by start do."
)
class CampaignReadiness:
    slot_count: int = field(description="The number of slots.")
    places: int = field(description="The number of places in slots that have not started.")
    user_count: int = field(
        description="How many users may book, at most 100,000. If the campaign is for everyone, "
        "only members count."
    )
    drafts: SlotProblem = field(description="The slots that stay hidden until `publishSlot`.")
    past_slots: SlotProblem = field(description="The slots that nobody can book: they have begun.")
    resource_conflict_count: int = field(
        description="How many drafts cannot be published because a resource is taken."
    )
    resource_conflicts: list[ResourceConflict] = field(
        description="The first of these drafts by start, at most 5."
    )
    users_without_password: UserProblem = field(
        description="The users who may book and cannot sign in, because they have set no password. "
        "A child that never signs in counts if none of its guardians can sign in."
    )
    users_without_invitation: UserProblem = field(
        description="Those of `usersWithoutPassword` who have no invitation, or whose last one is "
        "over. Of a child that never signs in, the invitations of its guardians count."
    )
    last_invited_at: datetime | None = field(
        description="When the newest invitation was created that nobody has used and that still "
        "sets a password; null if there is none."
    )
    bookable_slots: int = field(
        description="How many slots one user can book at most: one of each choice group, and none "
        "that has begun. Drafts count."
    )
    users_with_too_few_slots: UserProblem = field(
        description="The users who may book more slots than they can find: all if `bookableSlots` "
        "is less than the `maxBookings` of the campaign, or zero."
    )

    @classmethod
    def from_domain(cls, found: campaign_readiness.CampaignReadiness, viewer: Caller) -> Self:
        slots, without_password = found.slots, found.without_password
        until = without_password.last_valid_until
        return cls(
            slot_count=slots.slot_count,
            places=slots.places,
            user_count=found.eligible.count,
            drafts=SlotProblem.from_domain(slots.drafts),
            past_slots=SlotProblem.from_domain(slots.past),
            resource_conflict_count=len(slots.taken),
            resource_conflicts=[
                ResourceConflict.from_domain(draft_id, taken)
                for draft_id, taken in slots.taken[:MAX_EXAMPLES]
            ],
            users_without_password=UserProblem.from_domain(without_password.users, viewer),
            users_without_invitation=UserProblem.from_domain(without_password.uninvited, viewer),
            last_invited_at=until - INVITATION_TTL if until else None,
            bookable_slots=slots.bookable,
            users_with_too_few_slots=UserProblem.from_domain(found.with_too_few_slots, viewer),
        )


CampaignIdArgument = Annotated[strawberry.ID, argument(description="The id of the campaign.")]


@strawberry.type
class CampaignReadinessQueries:
    @field(
        description="What stands in the way before a campaign is published, or null if there is no "
        "such campaign. Organizers only."
    )
    async def campaign_readiness(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> CampaignReadiness | None:
        organizer = info.context.require_organizer()
        found = await reports.readiness(info.context.services, require_campaign_id(campaign_id))
        return CampaignReadiness.from_domain(found, organizer) if found else None
