"""Claims of accounts that a stranger registered, and what becomes of their bookings."""

import httpx
import pytest
from redis import Redis

from slotlock.auth.admin import account_claims
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import User
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    CLOSE,
    CONFIGURE,
    DEMAND,
    MY_WISHES,
    SET_WISHES,
    create_campaign,
)
from tests.support.clients.client import Json, hours_from_now
from tests.support.clients.fixtures import Two
from tests.support.scenarios.families import store_guardians
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import insert_user

MEMBER_COUNT = 1
CLAIM = """mutation($user: ID!, $cancel: Boolean) {
  claimUser(userId: $user, cancelPlaces: $cancel) {
    __typename ... on Refusal { code }
    ... on AccountHoldsPlaces { bookings waitlistEntries tickets wishes }
    ... on UserClaimed {
      bookings waitlistEntries tickets wishes invitationToken user { selfRegistered hasPassword }
    } } }"""
SET_PASSWORD = """mutation($token: String!) {
  setPassword(token: $token, password: "correct horse battery") {
    __typename ... on Session { accessToken } } }"""
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"


@pytest.fixture
async def stranger(auth: Auth) -> User:
    """Return a user who registered."""
    return await insert_user(auth, self_registered=True)


@pytest.fixture
async def places(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, stranger: User, clients: Two
) -> dict[str, str]:
    """Let the stranger book a slot, wait for another and wish for a third one.

    Return the slots, and the campaign of the draw.
    """
    member, organizer = clients
    token = (await open_session(auth, stranger)).access_token
    client = BookingClient(http, two_apps[1].url, token)
    booked, full = await organizer.add_slot(), await organizer.add_slot(waitlistCapacity=5)
    assert (await client.book_slot(booked))["__typename"] == "Booked"
    assert (await member.book(full))["__typename"] == "Booked"
    assert (await client.join(full))["__typename"] == "WaitlistJoined"
    campaign = await create_campaign(organizer)
    wished = await organizer.add_slot(campaignId=campaign)
    draw = {"campaignId": campaign, "wishesUntil": hours_from_now(1)}
    assert (await organizer.execute(CONFIGURE, input=draw))["state"] == "COLLECTING"
    saved = await client.execute(SET_WISHES, id=campaign, slots=[wished])
    assert saved["__typename"] == "WishesSaved"
    return {"booked": booked, "full": full, "campaign": campaign, "wished": wished}


async def claim(client: BookingClient, user: User, *, cancel: bool | None = None) -> Json:
    """Claim an account and return the result."""
    claimed: Json = await client.execute(CLAIM, user=f"user_{user.id}", cancel=cancel)
    return claimed


async def test_a_claim_gives_the_account_to_the_user_of_its_address(
    auth: Auth, stranger: User, admin: BookingClient
) -> None:
    session = await open_session(auth, stranger)
    claimed = await claim(admin, stranger)
    assert claimed["user"] == {"selfRegistered": False, "hasPassword": False}
    with pytest.raises(BadTokenError):
        await authenticate(auth, f"Bearer {session.access_token}")
    accepted = await admin.execute(SET_PASSWORD, token=claimed["invitationToken"])
    assert accepted["__typename"] == "Session"
    assert (await claim(admin, stranger))["code"] == "NOT_SELF_REGISTERED"


async def test_a_claim_leaves_who_acts_for_whom(
    auth: Auth, admin: BookingClient, mongo_url: str
) -> None:
    parent, child = [await insert_user(auth, self_registered=True) for _ in range(2)]
    store_guardians(stored_database(mongo_url), child.id, parent.id)
    for user in (parent, child):
        assert (await claim(admin, user))["__typename"] == "UserClaimed"
    found = await auth.repositories.users.find_dependents([parent.id])
    assert [(each.id, each.self_registered) for each in found] == [(child.id, False)]


async def test_a_claim_asks_what_becomes_of_the_places_before_it_changes_anything(
    auth: Auth, stranger: User, admin: BookingClient, places: dict[str, str]
) -> None:
    session = await open_session(auth, stranger)
    asked = await claim(admin, stranger)
    assert asked == {
        "__typename": "AccountHoldsPlaces",
        "code": "ACCOUNT_HOLDS_PLACES",
        "bookings": 1,
        "waitlistEntries": 1,
        "tickets": 0,
        "wishes": 1,
    }
    assert await authenticate(auth, f"Bearer {session.access_token}")


@pytest.mark.parametrize("cancel", [True, False])
async def test_a_claim_cancels_the_places_or_leaves_them(
    stranger: User, admin: BookingClient, clients: Two, places: dict[str, str], *, cancel: bool
) -> None:
    claimed = await claim(admin, stranger, cancel=cancel)
    assert (claimed["bookings"], claimed["waitlistEntries"], claimed["wishes"]) == (1, 1, 1)
    _, organizer = clients
    slots = "query($id: ID!) { slot(id: $id) { remaining waitlistLength } }"
    booked = await organizer.execute(slots, id=places["booked"])
    full = await organizer.execute(slots, id=places["full"])
    assert booked["remaining"] == (1 if cancel else 0)
    assert full["waitlistLength"] == (0 if cancel else 1)
    demand = await organizer.execute(DEMAND, id=places["campaign"])
    assert [each["wishes"] for each in demand] == ([0] if cancel else [1])


async def test_a_claim_leaves_the_wishes_of_a_team_to_its_other_members(
    two_apps: Pair,
    http: httpx.AsyncClient,
    auth: Auth,
    stranger: User,
    admin: BookingClient,
    clients: Two,
    places: dict[str, str],
) -> None:
    member, organizer = clients
    token = (await open_session(auth, stranger)).access_token
    client = BookingClient(http, two_apps[1].url, token)
    team = await member.create_team_with(client)
    campaign, slots = places["campaign"], [places["wished"]]
    assert (await client.execute(SET_WISHES, id=campaign, slots=[]))["wishes"] is None
    saved = await member.execute(SET_WISHES, id=campaign, slots=slots, team=team)
    assert len(saved["wishes"]["userIds"]) == 2
    assert (await claim(admin, stranger, cancel=True))["wishes"] == 1
    demand = await organizer.execute(DEMAND, id=campaign)
    assert [each["wishes"] for each in demand] == [1]
    assert await member.execute(MY_WISHES, id=campaign)


async def test_wishes_of_a_closed_draw_are_no_places_of_an_account(
    stranger: User, admin: BookingClient, clients: Two, places: dict[str, str]
) -> None:
    _, organizer = clients
    assert (await organizer.execute(CLOSE, id=places["campaign"]))["state"] == "CLOSED"
    assert (await claim(admin, stranger))["wishes"] == 0


async def test_a_claim_asks_again_about_what_it_could_not_cancel(
    redis: Redis, stranger: User, admin: BookingClient, places: dict[str, str]
) -> None:
    assert redis.set(lock_key(places["booked"]), "somebody-else:1")
    asked = await claim(admin, stranger, cancel=True)
    left = (asked["bookings"], asked["waitlistEntries"], asked["wishes"])
    assert (asked["__typename"], left) == ("AccountHoldsPlaces", (1, 0, 0))
    redis.delete(lock_key(places["booked"]))
    claimed = await claim(admin, stranger, cancel=True)
    assert (claimed["__typename"], claimed["bookings"]) == ("UserClaimed", 1)


async def test_a_claim_that_was_interrupted_is_repeated(
    auth: Auth, stranger: User, admin: BookingClient
) -> None:
    assert isinstance(await account_claims.lock(auth, stranger.id), User)
    claimed = await claim(admin, stranger)
    assert claimed["__typename"] == "UserClaimed"


async def test_only_an_admin_claims_and_nobody_claims_what_is_banned_or_unknown(
    auth: Auth, stranger: User, admin: BookingClient, clients: Two
) -> None:
    for client in clients:
        code = await client.error_code(CLAIM, user=f"user_{stranger.id}")
        assert code == "FORBIDDEN"
    assert (await claim(admin, await insert_user(auth)))["code"] == "NOT_SELF_REGISTERED"
    unknown = await admin.execute(CLAIM, user="user_" + "0" * 24)
    assert unknown["code"] == "USER_NOT_FOUND"
    await admin.execute(BAN, user=f"user_{stranger.id}")
    assert (await claim(admin, stranger))["code"] == "INVALID_INPUT"
