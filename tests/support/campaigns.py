"""Campaigns as an organiser keeps them, and what those are told who want a place in one."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.client import Client, Json, in_hours
from tests.support.desk import Person

CAMPAIGN = """fragment C on Campaign {
  id name published state opensAt closesAt eligibleGroups maxBookings forbidOverlap
  groupLimits { group limit } cancelUntil version
}"""
CREATE = f"""mutation($input: CreateCampaignInput!) {{ createCampaign(input: $input) {{
  __typename ...C ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field message }} }}
}} }} {CAMPAIGN}"""
CHANGE = f"""mutation($input: UpdateCampaignInput!) {{ updateCampaign(input: $input) {{
  __typename ...C ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field message }} }}
  ... on CampaignNotFound {{ campaignId }} ... on CampaignBusy {{ retryAfterMs }}
}} }} {CAMPAIGN}"""
PUBLISH = f"""mutation($id: ID!) {{ publishCampaign(campaignId: $id) {{
  __typename ...C ... on Refusal {{ code }} ... on CampaignNotFound {{ campaignId }}
}} }} {CAMPAIGN}"""
UNPUBLISH = PUBLISH.replace("publishCampaign", "unpublishCampaign")
READ = f"query($id: ID!) {{ campaign(id: $id) {{ ...C }} }} {CAMPAIGN}"
LIST = """query($first: Int! = 100, $after: String) { campaigns(first: $first, after: $after) {
  nodes { id opensAt } pageInfo { hasNextPage endCursor }
} }"""
SET_GROUPS = """mutation($input: SetGroupsInput!) {
  setGroups(input: $input) { __typename ... on User { groups } }
}"""

WHY = """fragment W on Refusal { __typename code
  ... on NotYetOpen { opensAt slot { id } }
  ... on Closed { closesAt slotId }
  ... on NotEligible { slot { id } }
  ... on LimitReached { limit otherBookingId slot { id } }
  ... on GroupFull { group limit slot { id } }
  ... on TimeConflict {
    otherBookingId meeting { startTime endTime } otherMeeting { startTime endTime } slot { id }
  }
}"""
BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename ...W ... on Booked {{ booking {{ id status overrode createdAt }} }}
}} }} {WHY}"""
BOOK_ALL = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  __typename ... on ClaimsRefused {{ refusals {{ claim refusal {{ ...W }} }} }}
  ... on AllBooked {{ bookings {{ id overrode }} }}
}} }} {WHY}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  __typename ...W ... on BookingMoved {{ booking {{ id status overrode }} }}
}} }} {WHY}"""
JOIN = f"""mutation($slot: ID!) {{ joinWaitlist(slotId: $slot) {{
  __typename ...W ... on WaitlistJoined {{ position }}
}} }} {WHY}"""
CONFIRM = f"""mutation($booking: ID!) {{ confirmBooking(bookingId: $booking, waitMs: 5000) {{
  __typename ...W ... on BookingConfirmed {{ booking {{ status overrode }} }}
}} }} {WHY}"""

Way = Callable[[Person, Person, str], Coroutine[Any, Any, Json]]


def campaign_fields(**fields: Any) -> Json:
    """A published campaign that opened an hour ago, unless the fields say otherwise."""
    times = {"opensAt": in_hours(-1), "closesAt": in_hours(10)}
    return {"name": "Courses", "published": True, **times, **fields}


async def campaign(organiser: Client, **fields: Any) -> str:
    """The id of a new campaign."""
    made = await organiser.ask(CREATE, input=campaign_fields(**fields))
    assert made["__typename"] == "Campaign", made
    return str(made["id"])


async def change(organiser: Client, campaign_id: str, **changes: Any) -> Json:
    """The campaign as it is after a change."""
    made: Json = await organiser.ask(CHANGE, input={"campaignId": campaign_id, **changes})
    assert made["__typename"] == "Campaign", made
    return made


async def publish(organiser: Client, campaign_id: str) -> None:
    """Let everybody see a campaign."""
    assert (await organiser.ask(PUBLISH, id=campaign_id))["published"] is True


async def unpublish(organiser: Client, campaign_id: str) -> None:
    """Let organisers only see a campaign."""
    assert (await organiser.ask(UNPUBLISH, id=campaign_id))["published"] is False


async def give_groups(organiser: Client, person: Person, *groups: str) -> None:
    """Let a person carry these groups and no others."""
    given = {"userId": await person.id(), "groups": groups}
    assert (await organiser.ask(SET_GROUPS, input=given))["__typename"] == "User"


async def books(person: Client, slot_id: str, **wish: Any) -> Json:
    """What came of booking, with why it did not."""
    outcome: Json = await person.ask(BOOK, input={"slotId": slot_id, **wish})
    return outcome


async def _several(person: Person, organiser: Person, slot_id: str) -> Json:
    """The same by a claim beside another."""
    beside = await organiser.slot(startTime=in_hours(900), endTime=in_hours(901))
    claims = [{"slotId": beside}, {"slotId": slot_id}]
    outcome: Json = await person.ask(BOOK_ALL, input={"claims": claims})
    if outcome["__typename"] != "ClaimsRefused":
        return outcome
    (refused,) = outcome["refusals"]
    assert refused["claim"] == 1
    refusal: Json = refused["refusal"]
    return refusal


async def moves(person: Person, organiser: Person, slot_id: str) -> Json:
    """What came of moving there from a slot that belongs to nothing."""
    elsewhere = await organiser.slot(startTime=in_hours(900), endTime=in_hours(901))
    booking = (await person.wish(elsewhere))["booking"]
    wish = {"bookingId": booking["id"], "slotId": slot_id}
    outcome: Json = await person.ask(MOVE, input=wish)
    return outcome


async def joins(person: Person, organiser: Person, slot_id: str) -> Json:
    """What came of joining the line."""
    outcome: Json = await person.ask(JOIN, slot=slot_id)
    return outcome


async def _books(person: Person, organiser: Person, slot_id: str) -> Json:
    return await books(person, slot_id)


async def _holds(person: Person, organiser: Person, slot_id: str) -> Json:
    return await books(person, slot_id, hold=True)


async def _waits(person: Person, organiser: Person, slot_id: str) -> Json:
    return await books(person, slot_id, waitMs=5000)


# The ways to ask for a place, by their names.
PLACES: dict[str, Way] = {
    "booking": _books,
    "holding": _holds,
    "waiting one's turn": _waits,
    "several": _several,
    "moving": moves,
}
WAYS: dict[str, Way] = {**PLACES, "joining the line": joins}
