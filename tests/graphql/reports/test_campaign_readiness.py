"""What organizers learn before they publish a campaign."""

import secrets
from datetime import UTC, datetime, timedelta

from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.infrastructure.mongo.client import Document
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, set_groups, update_campaign
from tests.support.clients.client import times_in
from tests.support.clients.user_files import generated_user_csv
from tests.support.stores.empty_database import stored_database

READINESS = """query($campaign: ID!) { campaignReadiness(campaignId: $campaign) {
  slotCount places userCount bookableSlots
  drafts { count examples { id } } pastSlots { count examples { id } }
  resourceConflictCount resourceConflicts { resource slot { id } other { id } }
  usersWithoutPassword { count examples { email } }
  usersWithoutInvitation { count examples { email } } lastInvitedAt
  usersWithTooFewSlots { count examples { email } }
} }"""
LIST = """query($campaign: ID) {
  users(filter: {campaignId: $campaign, withoutPassword: true}) { nodes { name email } } }"""
INVITE = "mutation($id: ID!) { inviteUser(userId: $id) { __typename } }"


async def test_readiness_names_slots_and_users_with_problems(
    auth: Auth, organizer: BookingClient, member: BookingClient
) -> None:
    name = f"x{secrets.token_hex(8)}.test"
    await import_users(auth, generated_user_csv(name, 6, name), dry_run=False)
    await set_groups(organizer, member, name)
    campaign = await create_campaign(
        organizer, published=False, eligibleGroups=[[name]], maxBookings=3
    )
    room = {"resource": f"Room {name}", "campaignId": campaign}
    taken = await organizer.add_slot(**room, capacity=2)
    draft = await organizer.add_slot(**room, draft=True, choiceGroup="A")
    await organizer.add_slot(campaignId=campaign, choiceGroup="A", draft=True)
    past = await organizer.add_slot(campaignId=campaign, **times_in(-2, 4), allowPast=True)
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
    auth: Auth, organizer: BookingClient
) -> None:
    name = f"x{secrets.token_hex(8)}.test"
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


async def test_a_child_that_never_signs_in_is_ready_as_soon_as_one_guardian_is(
    auth: Auth, organizer: BookingClient, mongo_url: str
) -> None:
    name = secrets.token_hex(8)
    lines = ("Ali,,pam@{0} tom@{0},{0}", "Bea,,pam@{0},{0}", "Cem,,cho@{0},{0}", "Dan,,ida@{0},{0}",
             "Zoe,zoe@{0},gold@{0},{0}")  # fmt: skip
    text = "\n".join(("name,email,guardian,class", *lines)).format(name)
    await import_users(auth, text.encode(), dry_run=False)
    sets = [["x", name], [name, "y"]]
    campaign = await create_campaign(organizer, published=False, eligibleGroups=sets)

    async def without() -> list[str]:
        listed = (await organizer.execute(LIST, campaign=campaign))["nodes"]
        return sorted((each["email"] or each["name"]).partition("@")[0] for each in listed)

    async def ready() -> tuple[int, int, bool]:
        found = await organizer.execute(READINESS, campaign=campaign)
        count = found["usersWithoutPassword"]["count"]
        examples = [each["email"] for each in found["usersWithoutPassword"]["examples"]]
        assert (len(examples), examples[-1]) == (count, f"zoe@{name}")  # by login name
        return count, found["usersWithoutInvitation"]["count"], found["lastInvitedAt"] is not None

    assert await ready() == (5, 5, False)
    assert await without() == ["cho", "gold", "ida", "pam", "tom", "zoe"]
    users = stored_database(mongo_url)["users"]

    def change(guardian: str, update: Document) -> None:
        assert users.update_one({"email": f"{guardian}@{name}"}, update).matched_count

    for each in ("pam", "ida"):
        stored = users.find_one({"email": f"{each}@{name}"})
        assert stored is not None
        await organizer.execute(INVITE, id=f"user_{stored['_id']}")
    assert await ready() == (5, 2, True)
    change("ida", {"$set": {"banned": True}})  # so that the link no longer works
    assert await ready() == (5, 3, True)
    change("ida", {"$unset": {"banned": ""}})
    # One guardian is enough, with a password or a sign-on; the child that signs in needs one.
    change("pam", {"$unset": {"withoutPassword": "", "invitation": ""}})
    change("cho", {"$set": {"identities": [{"key": f"{name} cho"}]}})
    change("gold", {"$unset": {"withoutPassword": ""}})
    assert await ready() == (2, 1, True)
    change("pam", {"$set": {"banned": True}})
    assert await ready() == (4, 3, True)
    # Nobody can sign in for a child without guardians, so the list names the child.
    users.update_one({"name": "Dan", "groups": name}, {"$unset": {"guardians": ""}})
    assert await ready() == (4, 4, False)
    assert await without() == ["Dan", "cho", "tom", "zoe"]
    # Who lacks a group of one set may not book, and is neither counted nor listed.
    await update_campaign(organizer, campaign, eligibleGroups=[*sets, [f"2 {name}"]])
    counted = await organizer.execute(READINESS, campaign=campaign)
    assert (counted["usersWithoutPassword"]["count"], await without()) == (0, [])
    assert await organizer.error_code(LIST, campaign="campaign_" + "0" * 24) == "BAD_USER_INPUT"


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
