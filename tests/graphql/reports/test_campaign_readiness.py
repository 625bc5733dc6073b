"""What organizers learn before they publish a campaign."""

import secrets
from datetime import UTC, datetime, timedelta

from slotlock.auth.admin.user_import import import_users
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import hours_from_now
from tests.support.clients.user_files import generated_user_csv
from tests.support.stores.users import auth_for_database

READINESS = """query($campaign: ID!) { campaignReadiness(campaignId: $campaign) {
  slotCount places userCount bookableSlots
  drafts { count examples { id } } pastSlots { count examples { id } }
  resourceConflictCount resourceConflicts { resource slot { id } other { id } }
  usersWithoutPassword { count examples { email } }
  usersWithoutInvitation { count examples { email } } lastInvitedAt
  usersWithTooFewSlots { count examples { email } }
} }"""
INVITE = "mutation($id: ID!) { inviteUser(userId: $id) { __typename } }"


async def test_readiness_names_slots_and_users_with_problems(
    organizer: BookingClient, member: BookingClient, mongo_url: str
) -> None:
    name = f"x{secrets.token_hex(8)}.test"
    async with auth_for_database(mongo_url) as auth:
        await import_users(auth, generated_user_csv(name, 6, name), dry_run=False)
    await set_groups(organizer, member, name)
    campaign = await create_campaign(
        organizer, published=False, eligibleGroups=[[name]], maxBookings=3
    )
    room = {"resource": f"Room {name}", "campaignId": campaign}
    taken = await organizer.add_slot(**room, capacity=2)
    draft = await organizer.add_slot(**room, draft=True, choiceGroup="A")
    await organizer.add_slot(campaignId=campaign, choiceGroup="A", draft=True)
    past = await organizer.add_slot(
        campaignId=campaign, startTime=hours_from_now(-2), endTime=hours_from_now(2), allowPast=True
    )
    await organizer.cancel_slot(await organizer.add_slot(campaignId=campaign))

    found = await organizer.execute(READINESS, campaign=campaign)
    examples = found["usersWithoutPassword"].pop("examples")
    assert [each["email"].endswith(name) for each in examples] == [True] * 5
    assert found["usersWithoutPassword"] == {"count": 6}
    # The published slot and one of the choice group, but each user may book three.
    assert (found["bookableSlots"], found["usersWithTooFewSlots"]["count"]) == (2, 7)
    assert (found["slotCount"], found["places"], found["userCount"]) == (4, 4, 7)
    assert found["drafts"]["count"] == 2
    assert found["pastSlots"] == {"count": 1, "examples": [{"id": past}]}
    assert found["resourceConflictCount"] == 1
    assert found["resourceConflicts"] == [
        {"resource": room["resource"], "slot": {"id": draft}, "other": {"id": taken}}
    ]


async def test_readiness_separates_unused_invitations_from_missing_ones(
    organizer: BookingClient, mongo_url: str
) -> None:
    name = f"x{secrets.token_hex(8)}.test"
    async with auth_for_database(mongo_url) as auth:
        await import_users(auth, generated_user_csv(name, 3, name), dry_run=False)
    campaign = await create_campaign(organizer, published=False, eligibleGroups=[[name]])
    found = await organizer.execute(READINESS, campaign=campaign)
    assert (found["usersWithoutInvitation"]["count"], found["lastInvitedAt"]) == (3, None)
    invited, *_ = found["usersWithoutInvitation"]["examples"]
    users = "query($text: String!) { users(filter: {text: $text}) { nodes { id } } }"
    [user] = (await organizer.execute(users, text=invited["email"]))["nodes"]
    earliest = datetime.now(UTC)
    await organizer.execute(INVITE, id=user["id"])
    found = await organizer.execute(READINESS, campaign=campaign)
    assert (found["usersWithoutPassword"]["count"], found["usersWithoutInvitation"]["count"]) == (
        3,
        2,
    )
    invited_at = datetime.fromisoformat(found["lastInvitedAt"])
    assert timedelta(seconds=-1) < invited_at - earliest < timedelta(minutes=1)


async def test_a_campaign_without_problems_is_ready(
    organizer: BookingClient, member: BookingClient
) -> None:
    group = secrets.token_hex(8)
    await set_groups(organizer, member, group)
    campaign = await create_campaign(organizer, published=False, eligibleGroups=[[group]])
    await organizer.add_slot(campaignId=campaign)
    found = await organizer.execute(READINESS, campaign=campaign)
    for problem in ("drafts", "pastSlots", "usersWithoutPassword", "usersWithTooFewSlots"):
        assert found[problem] == {"count": 0, "examples": []}, problem
    assert (found["userCount"], found["resourceConflictCount"]) == (1, 0)
    assert await member.error_code(READINESS, campaign=campaign) == "FORBIDDEN"
    assert await organizer.execute(READINESS, campaign="campaign_" + "0" * 24) is None
