"""A queued request is decided on the present state: each change since it was sent may refuse it."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from bson import ObjectId

from slotlock.auth.admin import account_admin
from slotlock.domain.users.user import Role, User, UserId
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    create_campaign,
    set_groups,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import hours_from_now
from tests.support.clients.teams import LEAVE_TEAM
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    crowded_queue_deployment,
)
from tests.support.scenarios.families import store_guardians
from tests.support.scenarios.led_course import CREATE_LED
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import auth_for_database

__all__ = ["crowded_queue_deployment"]

NOON = {"startTime": "2040-05-07T12:00:00Z", "endTime": "2040-05-07T13:00:00Z"}
HALF_PAST = {"startTime": "2040-05-07T12:30:00Z", "endTime": "2040-05-07T13:30:00Z"}
NEXT_DAY = {"startTime": "2040-05-08T12:00:00Z", "endTime": "2040-05-08T13:00:00Z"}
BAN_USER = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"


@dataclass
class CampaignScenario:
    """A slot with two places in a campaign with all rules; `user` requests one of them."""

    organizer: BookingClient
    user: QueueClient
    other: QueueClient
    third: QueueClient
    campaign_id: str = field(default="", init=False)
    slot_id: str = field(default="", init=False)

    async def open(self) -> None:
        """Create the campaign and the slot."""
        rules = {"eligibleGroups": [["5a"]], "forbidOverlap": True, "maxBookings": 2}
        self.campaign_id = await create_campaign(self.organizer, **rules)
        for client in (self.user, self.other):
            await set_groups(self.organizer, client, "5a")
        self.slot_id = await self.add_slot(capacity=2, **NOON)

    async def add_slot(self, **fields: Any) -> str:
        """Create a slot of the campaign."""
        return await self.organizer.add_slot(campaignId=self.campaign_id, **fields)


async def cancel_slot(scenario: CampaignScenario) -> None:
    await scenario.organizer.cancel_slot(scenario.slot_id)


async def close_campaign(scenario: CampaignScenario) -> None:
    times = {"opensAt": hours_from_now(-2), "closesAt": hours_from_now(-1)}
    await update_campaign(scenario.organizer, scenario.campaign_id, **times, allowPast=True)


async def postpone_opening(scenario: CampaignScenario) -> None:
    await update_campaign(scenario.organizer, scenario.campaign_id, opensAt=hours_from_now(1))


async def unpublish(scenario: CampaignScenario) -> None:
    await unpublish_campaign(scenario.organizer, scenario.campaign_id)


async def change_group(scenario: CampaignScenario) -> None:
    await set_groups(scenario.organizer, scenario.user, "5b")


async def book_overlapping_slot(scenario: CampaignScenario) -> None:
    other = await scenario.add_slot(**HALF_PAST)
    assert (await scenario.user.book_slot(other))["__typename"] == "Booked"


async def reach_limit(scenario: CampaignScenario) -> None:
    await update_campaign(scenario.organizer, scenario.campaign_id, maxBookings=1)
    other = await scenario.add_slot(**NEXT_DAY)
    assert (await scenario.user.book_slot(other))["__typename"] == "Booked"


async def fill_slot(scenario: CampaignScenario) -> None:
    for client in (scenario.other, scenario.third):
        await set_groups(scenario.organizer, client, "5a")
        assert (await client.book_slot(scenario.slot_id))["__typename"] == "Booked"


async def reduce_capacity(scenario: CampaignScenario) -> None:
    assert (await scenario.other.book_slot(scenario.slot_id))["__typename"] == "Booked"
    updated = await scenario.organizer.update_slot(scenario.slot_id, capacity=1)
    assert updated["__typename"] == "Slot"


async def book_same_slot(scenario: CampaignScenario) -> None:
    assert (await scenario.user.book_slot(scenario.slot_id))["__typename"] == "Booked"


@dataclass(frozen=True)
class Change:
    """A change while the request is queued, its refusal, and the bookings of the slot after it."""

    apply: Callable[[CampaignScenario], Awaitable[None]]
    code: str
    booking_count: int = 0


CHANGES = {
    "slot cancelled": Change(cancel_slot, "SLOT_CANCELLED"),
    "campaign closed": Change(close_campaign, "CLOSED"),
    "opening postponed": Change(postpone_opening, "NOT_YET_OPEN"),
    "campaign unpublished": Change(unpublish, "SLOT_NOT_FOUND"),
    "group changed": Change(change_group, "NOT_ELIGIBLE"),
    "overlapping slot booked": Change(book_overlapping_slot, "TIME_CONFLICT"),
    "limit reached": Change(reach_limit, "LIMIT_REACHED"),
    "slot filled": Change(fill_slot, "SLOT_FULL", 2),
    "capacity reduced": Change(reduce_capacity, "SLOT_FULL", 1),
    "same slot booked": Change(book_same_slot, "ALREADY_BOOKED", 1),
}


async def outcomes_after_changes(
    deployment: QueueDeployment, without_guards: str = ""
) -> dict[str, tuple[str, int]]:
    """Return the outcome of a request that was queued before each change, and the bookings."""
    app = deployment.app()
    scenarios, tickets = {}, {}
    for number, (name, change) in enumerate(CHANGES.items()):
        user, other, third = (deployment.queue_client(app, 3 * number + n) for n in range(3))
        scenario = CampaignScenario(deployment.organizer(app), user, other, third)
        await scenario.open()
        tickets[name] = await user.enqueue(scenario.slot_id)
        await change.apply(scenario)
        scenarios[name] = scenario
    deployment.worker(without_guards)
    return {
        name: (
            await scenario.user.wait_for_outcome_code(tickets[name]["id"]),
            len(deployment.booking_ids(scenario.slot_id)),
        )
        for name, scenario in scenarios.items()
    }


async def test_each_change_while_a_request_is_queued_refuses_it(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    outcomes = await outcomes_after_changes(crowded_queue_deployment)
    assert outcomes == {name: (each.code, each.booking_count) for name, each in CHANGES.items()}


async def test_control_without_revalidation_each_request_is_booked_despite_the_change(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    outcomes = await outcomes_after_changes(crowded_queue_deployment, "revalidation")
    assert [code for code, _ in outcomes.values()] == ["Booked"] * len(CHANGES)


@dataclass(frozen=True)
class Sent:
    """A request that is queued: who sent it for whom, at which app."""

    deployment: QueueDeployment
    app: AppProcess
    sender: BookingClient
    user: BookingClient


async def ban(sent: Sent, client: BookingClient) -> None:
    organizer = sent.deployment.organizer(sent.app)
    outcome = await organizer.execute(BAN_USER, user=await client.fetch_user_id())
    assert outcome["__typename"] == "User", outcome


async def leave_team(sent: Sent) -> None:
    (team,) = await sent.user.execute("{ myTeams { id } }")
    assert (await sent.user.execute(LEAVE_TEAM, team=team["id"]))["__typename"] == "TeamLeft"


async def end_guardianship(sent: Sent) -> None:
    set_stored_guardians(sent.deployment, await sent.user.fetch_user_id())


def set_stored_guardians(deployment: QueueDeployment, user_id: str, *guardian_ids: str) -> None:
    """Replace the guardians of a user in the database."""
    store_guardians(stored_database(deployment.mongo_url), user_id, *guardian_ids)


async def end_lead(sent: Sent) -> None:
    leader = {"leader": ObjectId((await sent.sender.fetch_user_id())[-24:])}
    resources = stored_database(sent.deployment.mongo_url)["resources"]
    resources.update_one(leader, {"$unset": {"leader": ""}})


async def add_led_slot(organizer: BookingClient, leader: BookingClient, pupil: QueueClient) -> str:
    """Create a slot whose leader may book the pupil."""
    resource = f"Berg {secrets.token_hex(4)}"
    await organizer.execute(CREATE_LED, name=resource, leader=await leader.fetch_user_id())
    await set_groups(organizer, pupil, "5a")
    campaign_id = await create_campaign(organizer, leaderGroups=["5a"])
    return await organizer.add_slot(campaignId=campaign_id, resource=resource, **NOON)


async def ban_user(sent: Sent) -> None:
    await ban(sent, sent.user)


async def ban_sender(sent: Sent) -> None:
    await ban(sent, sent.sender)


async def demote_sender(sent: Sent) -> None:
    user_id = UserId((await sent.sender.fetch_user_id())[-24:])
    async with auth_for_database(sent.deployment.mongo_url) as auth:
        assert isinstance(await account_admin.set_role(auth, None, user_id, Role.MEMBER), User)


@dataclass(frozen=True)
class PermissionChange:
    """A change that ends the sender's permission to book for the user, and its refusal."""

    apply: Callable[[Sent], Awaitable[None]]
    outcome: str
    sender: str = "teammate"


# The only organizer is demoted when there is nothing left to organize.
PERMISSION_CHANGES = {
    "user banned": PermissionChange(ban_user, "UserBanned", "user"),
    "teammate left": PermissionChange(leave_team, "NotTeammate"),
    "teammate banned": PermissionChange(ban_user, "UserBanned"),
    "sender banned": PermissionChange(ban_sender, "UserBanned"),
    "user of an organizer's request banned": PermissionChange(ban_user, "UserBanned", "organizer"),
    "guardian removed": PermissionChange(end_guardianship, "NotTeammate", "guardian"),
    "guardian banned": PermissionChange(ban_sender, "UserBanned", "guardian"),
    "user of a guardian banned": PermissionChange(ban_user, "UserBanned", "guardian"),
    "leader replaced": PermissionChange(end_lead, "NotTeammate", "leader"),
}
DEMOTION = {"organizer demoted": PermissionChange(demote_sender, "NotTeammate", "organizer")}


async def outcomes_on_behalf(
    deployment: QueueDeployment,
    changes: Mapping[str, PermissionChange],
    without_guards: str = "",
) -> dict[str, str]:
    """Return the outcomes of requests that were queued before their senders' permission ended."""
    app, tickets, slot_ids = deployment.app(), {}, {}
    for number, (name, change) in enumerate(changes.items()):
        user, teammate = (deployment.queue_client(app, 2 * number + n) for n in range(2))
        if change.sender == "guardian":
            ids = [await client.fetch_user_id() for client in (user, teammate)]
            set_stored_guardians(deployment, *ids)
        elif change.sender != "leader":
            await teammate.create_team_with(user)
        organizer = QueueClient(deployment.http, app.url, deployment.user_tokens.organizer)
        senders = {"user": user, "organizer": organizer}
        sender = senders.get(change.sender, teammate)
        slot_ids[name] = (
            await add_led_slot(organizer, sender, user)
            if change.sender == "leader"
            else await deployment.add_slot(app)
        )
        ticket = await sender.enqueue(slot_ids[name], userId=await user.fetch_user_id())
        tickets[name] = ticket["id"]
        await change.apply(Sent(deployment, app, sender, user))
    deployment.worker(without_guards)
    await deployment.wait_until_empty()
    # Banned users cannot read their tickets any more.
    outcomes = {name: deployment.recorded_outcome(id_) for name, id_ in tickets.items()}
    for name, outcome in outcomes.items():
        is_booked = outcome == "Booked"
        assert len(deployment.consistent_booking_ids(slot_ids[name])) == is_booked
    return outcomes


@pytest.mark.parametrize("changes", [PERMISSION_CHANGES, DEMOTION], ids=["users", "organizer"])
async def test_a_permission_that_ends_while_a_request_is_queued_refuses_it(
    crowded_queue_deployment: QueueDeployment, changes: Mapping[str, PermissionChange]
) -> None:
    outcomes = await outcomes_on_behalf(crowded_queue_deployment, changes)
    assert outcomes == {name: change.outcome for name, change in changes.items()}


@pytest.mark.parametrize("changes", [PERMISSION_CHANGES, DEMOTION], ids=["users", "organizer"])
async def test_control_without_revalidation_a_request_is_booked_without_permission(
    crowded_queue_deployment: QueueDeployment, changes: Mapping[str, PermissionChange]
) -> None:
    outcomes = await outcomes_on_behalf(crowded_queue_deployment, changes, "revalidation")
    assert set(outcomes.values()) == {"Booked"}
