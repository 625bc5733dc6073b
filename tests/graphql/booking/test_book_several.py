"""Several places for several users: all of them or none, and each user's limits hold."""

import asyncio
import secrets
from collections import Counter

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BOOK_SEVERAL, BookingClient, create_booking_clients
from tests.support.clients.client import Json, hours_from_now
from tests.support.clients.fixtures import Four
from tests.support.clients.teams import LEAVE_TEAM

# Ada and Ben are a team, and Cleo is a stranger.
MEMBER_COUNT, TEAM_SIZE = 3, 2
NOWHERE = "slot_" + "0" * 24
OTHERS = """mutation($input: BookSlotsInput!) { bookSlots(input: $input) {
  ... on ClaimsRefused { refusals { refusal {
    code ... on LimitReached { otherBookingId }
  } } }
} }"""


def claims(slot_ids: list[str], *user_ids: str) -> list[Json]:
    """Return a claim for each pair of a slot and a user; None is the caller."""
    if not user_ids:
        return [{"slotId": slot_id} for slot_id in slot_ids]
    pairs = zip(slot_ids, user_ids, strict=True)
    return [{"slotId": slot_id, "userId": user_id} for slot_id, user_id in pairs]


async def left(user: BookingClient, slot_ids: list[str]) -> list[int]:
    """Return how many places are left in each slot."""
    return [(await user.fetch_slot(slot_id))["remaining"] for slot_id in slot_ids]


def refused(outcome: Json) -> dict[int, str]:
    """Return the code of each claim that was refused."""
    assert outcome["__typename"] == "ClaimsRefused", outcome
    return {each["claim"]: each["refusal"]["code"] for each in outcome["refusals"]}


async def test_all_places_are_booked_in_the_order_of_the_claims(clients: Four) -> None:
    ada, *_, organizer = clients
    slot_ids = [await organizer.add_slot(capacity=2) for _ in range(5)]
    outcome = await ada.book_all(*claims(slot_ids))
    assert outcome["__typename"] == "AllBooked"
    assert [booking["slot"]["id"] for booking in outcome["bookings"]] == slot_ids
    assert {booking["status"] for booking in outcome["bookings"]} == {"CONFIRMED"}
    assert await left(ada, slot_ids) == [1] * 5
    for booking in outcome["bookings"]:
        assert await ada.fetch_booking(booking["id"]) == booking


async def test_one_refused_claim_refuses_all_and_names_the_reason(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    free, full, off, own = [await organizer.add_slot() for _ in range(4)]
    begun = await organizer.add_slot(startTime=hours_from_now(-1))
    await cleo.book_slot(full)
    await ada.book_slot(own)
    await organizer.cancel_slot(off)
    requested = [free, full, off, begun, own, NOWHERE, "nonsense"]
    outcome = await ada.book_all(*claims(requested))
    assert refused(outcome) == {
        1: "SLOT_FULL",
        2: "SLOT_CANCELLED",
        3: "SLOT_STARTED",
        4: "ALREADY_BOOKED",
        5: "SLOT_NOT_FOUND",
        6: "SLOT_NOT_FOUND",
    }
    assert [each["slotId"] for each in outcome["refusals"]] == requested[1:]
    assert (await ben.fetch_slot(free))["remaining"] == 1


async def test_a_member_books_for_members_of_their_team_and_is_recorded(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    adas, bens = await ada.fetch_user_id(), await ben.fetch_user_id()
    outcome = await ada.book_all(*claims([slot_id, slot_id], adas, bens))
    own, other = outcome["bookings"]
    assert (own["user"]["id"], own["onBehalf"], own["madeBy"]["id"]) == (adas, False, adas)
    assert (other["user"]["id"], other["onBehalf"], other["madeBy"]["id"]) == (bens, True, adas)
    assert other["history"][0]["by"]["id"] == adas
    assert (await ben.fetch_slot(slot_id))["myBooking"]["id"] == other["id"]
    assert (await ben.cancel_booking(other["id"]))["__typename"] == "BookingCancelled"


async def test_one_place_can_be_booked_for_a_teammate(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    booked = await ada.book_slot(slot_id, userId=await ben.fetch_user_id())
    assert (booked["__typename"], booked["booking"]["onBehalf"]) == ("Booked", True)
    assert (await ada.book_slot(slot_id, userId=await cleo.fetch_user_id()))[
        "code"
    ] == "NOT_TEAMMATE"
    assert (await ada.book_slot(slot_id, userId="user_" + "0" * 24))["code"] == "NOT_TEAMMATE"
    assert (await ada.book_slot(slot_id, userId="nobody"))["code"] == "USER_NOT_FOUND"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 1


async def test_members_book_only_for_current_teammates(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(3)]
    users = [await user.fetch_user_id() for user in (ada, ben, cleo)]
    assert refused(await ada.book_all(*claims(slot_ids, *users))) == {2: "NOT_TEAMMATE"}
    assert refused(await cleo.book_all(*claims(slot_ids, *users))) == {
        0: "NOT_TEAMMATE",
        1: "NOT_TEAMMATE",
    }
    (team,) = await ben.execute("{ myTeams { id } }")
    await ben.execute(LEAVE_TEAM, team=team["id"])
    assert refused(await ada.book_all(*claims(slot_ids[:2], *users[:2]))) == {1: "NOT_TEAMMATE"}
    assert await left(ada, slot_ids) == [1, 1, 1]


async def test_an_invited_user_is_not_yet_a_teammate(clients: Four) -> None:
    ada, _, cleo, organizer = clients
    slot_id = await organizer.add_slot()
    (team,) = await ada.execute("{ myTeams { id } }")
    email = (await cleo.execute("{ me { email } }"))["email"]
    invite = "mutation($t: ID!, $e: EmailAddress!) { inviteToTeam(input: {teamId: $t, email: $e})"
    await ada.execute(invite + " { __typename } }", t=team["id"], e=email)
    assert (await ada.book_slot(slot_id, userId=await cleo.fetch_user_id()))[
        "code"
    ] == "NOT_TEAMMATE"


async def test_a_request_that_claims_one_place_twice_is_refused(clients: Four) -> None:
    ada, *_, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    twice = claims([slot_id, slot_id])
    named = [twice[0], {**twice[1], "userId": await ada.fetch_user_id()}]
    for requested in (twice, named):
        assert await ada.error_code(BOOK_SEVERAL, input={"claims": requested}) == "BAD_USER_INPUT"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 5


async def test_a_reached_limit_names_the_other_booking_but_not_another_claim(clients: Four) -> None:
    ada, *_, organizer = clients
    room = secrets.token_hex(8)
    bed, other_bed = [await organizer.add_slot(choiceGroup=room, capacity=2) for _ in range(2)]
    response = await ada.send(OTHERS, input={"claims": claims([bed, other_bed])})
    (only,) = response["data"]["bookSlots"]["refusals"]
    assert (only["refusal"]["code"], only["refusal"]["otherBookingId"]) == ("LIMIT_REACHED", None)
    own = (await ada.book_slot(bed))["booking"]["id"]
    response = await ada.send(OTHERS, input={"claims": claims([other_bed])})
    assert response["data"]["bookSlots"]["refusals"][0]["refusal"]["otherBookingId"] == own


async def test_1_to_50_places_are_claimed_at_once(clients: Four) -> None:
    ada, *_, organizer = clients
    slot_ids = await asyncio.gather(*(organizer.add_slot() for _ in range(51)))
    for requested in ([], claims(list(slot_ids))):
        assert await ada.error_code(BOOK_SEVERAL, input={"claims": requested}) == "BAD_USER_INPUT"
    outcome = await ada.book_all(*claims(list(slot_ids[:50])))
    assert len(outcome["bookings"]) == 50


async def test_an_unknown_user_id_is_refused_alike_alone_and_among_others(clients: Four) -> None:
    ada, *_, organizer = clients
    slot_id = await organizer.add_slot()
    alone = await ada.book_slot(slot_id, userId="nobody")
    several = await ada.book_all({"slotId": slot_id, "userId": "nobody"})
    assert refused(several) == {0: alone["code"]}


@pytest.mark.parametrize("patience", [0, 20_000])
async def test_two_users_never_end_up_with_four_beds(clients: Four, patience: int) -> None:
    ada, ben, _, organizer = clients
    adas, bens = await ada.fetch_user_id(), await ben.fetch_user_id()
    for _ in range(10):
        room = secrets.token_hex(8)
        beds = [await organizer.add_slot(choiceGroup=room) for _ in range(4)]
        outcomes = await asyncio.gather(
            ada.book_all(*claims(beds[:2], adas, bens), waitMs=patience),
            ben.book_all(*claims(beds[2:], bens, adas), waitMs=patience),
        )
        counts = Counter(outcome["__typename"] for outcome in outcomes)
        assert counts["AllBooked"] == 1
        assert sum(await left(ada, beds)) == 2


async def test_teams_that_claim_the_same_places_in_opposite_orders_get_all_or_nothing(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    users, organizer = create_booking_clients(http, 12, *two_apps)
    slot_ids = [await organizer.add_slot(capacity=4) for _ in range(6)]
    outcomes = await asyncio.gather(
        *(
            user.book_all(*claims(slot_ids[:: 1 if i % 4 < 2 else -1]), waitMs=20_000)
            for i, user in enumerate(users)
        )
    )
    assert Counter(o["__typename"] for o in outcomes) == {"AllBooked": 4, "ClaimsRefused": 8}
    assert await left(organizer, slot_ids) == [0] * 6
