"""Campaigns and their draws over GraphQL, and bookings whose refusals show the violated rule."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import (
    LOCK_WAIT_MS,
    GraphQLTestClient,
    Json,
    hours_from_now,
    times_in,
)
from tests.support.polling import poll_until

CAMPAIGN_FRAGMENT = """fragment C on Campaign {
  id name published state opensAt closesAt eligibleGroups maxBookings forbidOverlap
  groupLimits { group limit } cancelUntil admission noShowLimit { count days } version
  reminderMinutes openingMailHours leaderGroups
}"""
CREATE_CAMPAIGN = f"""mutation($input: CreateCampaignInput!) {{ createCampaign(input: $input) {{
  __typename ...C ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field message }} }}
}} }} {CAMPAIGN_FRAGMENT}"""
UPDATE_CAMPAIGN = f"""mutation($input: UpdateCampaignInput!) {{ updateCampaign(input: $input) {{
  __typename ...C ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field message }} }}
  ... on CampaignNotFound {{ campaignId }} ... on CampaignBusy {{ retryAfterMs }}
}} }} {CAMPAIGN_FRAGMENT}"""
PUBLISH_CAMPAIGN = f"""mutation($id: ID!) {{ publishCampaign(campaignId: $id) {{
  __typename ...C ... on Refusal {{ code }} ... on CampaignNotFound {{ campaignId }}
}} }} {CAMPAIGN_FRAGMENT}"""
UNPUBLISH_CAMPAIGN = PUBLISH_CAMPAIGN.replace("publishCampaign", "unpublishCampaign")
CAMPAIGN_BY_ID = f"query($id: ID!) {{ campaign(id: $id) {{ ...C }} }} {CAMPAIGN_FRAGMENT}"
CAMPAIGN_LIST = """query($first: Int! = 100, $after: String) {
  campaigns(first: $first, after: $after) {
  nodes { id opensAt } pageInfo { hasNextPage endCursor }
} }"""
SET_GROUPS = """mutation($input: SetGroupsInput!) {
  setGroups(input: $input) { __typename ... on User { groups } }
}"""

REFUSAL_FRAGMENT = """fragment W on Refusal { __typename code
  ... on NotYetOpen { opensAt slot { id } }
  ... on Closed { closesAt slotId }
  ... on NotEligible { slot { id } }
  ... on QueueOnly { slot { id } }
  ... on TooManyNoShows { count until slot { id } }
  ... on LimitReached { limit otherBookingId slot { id } }
  ... on GroupFull { group limit slot { id } }
  ... on TimeConflict {
    otherBookingId meeting { startTime endTime } otherMeeting { startTime endTime } slot { id }
  }
}"""
BOOK_WITH_REFUSAL = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename ...W ... on Booked {{ booking {{ id status overriddenLimits createdAt }} }}
}} }} {REFUSAL_FRAGMENT}"""
BOOK_SEVERAL_WITH_REFUSALS = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  __typename ... on ClaimsRefused {{ refusals {{ claim refusal {{ ...W }} }} }}
  ... on AllBooked {{ bookings {{ id overriddenLimits }} }}
}} }} {REFUSAL_FRAGMENT}"""
MOVE_WITH_REFUSAL = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  __typename ...W ... on BookingMoved {{ booking {{ id status overriddenLimits }} }}
}} }} {REFUSAL_FRAGMENT}"""
JOIN_WITH_REFUSAL = f"""mutation($slot: ID!) {{ joinWaitlist(slotId: $slot) {{
  __typename ...W ... on WaitlistJoined {{ position }}
}} }} {REFUSAL_FRAGMENT}"""
CONFIRM_WITH_REFUSAL = f"""mutation($booking: ID!) {{
 confirmBooking(bookingId: $booking, waitMs: 5000) {{
  __typename ...W ... on BookingConfirmed {{ booking {{ status overriddenLimits }} }}
}} }} {REFUSAL_FRAGMENT}"""

DRAW = """{ __typename ... on Draw { recordId state root seed { text source byServer } isWritten
  wishesUntil acceptsWishes supersedesId rootAt announcement { source at commitment }
  acts { state reason seedSource by { id } } }
  ... on Refusal { code } ... on SeedTooEarly { seedAt }
  ... on InvalidInput { fields { field code } }
  ... on DrawOutdated { slotIds } }"""
CONFIGURE = "mutation($input: ConfigureDrawInput!) { configureDraw(input: $input) " + DRAW + " }"
CLOSE = "mutation($id: ID!) { closeWishes(campaignId: $id) " + DRAW + " }"
RUN = "mutation($id: ID!, $seed: String) { runDraw(campaignId: $id, seed: $seed) " + DRAW + " }"
PUBLISH = "mutation($id: ID!) { publishDraw(campaignId: $id) " + DRAW + " }"
SUPERSEDE = (
    "mutation($id: ID!, $reason: String!) "
    "{ supersedeDraw(campaignId: $id, reason: $reason) " + DRAW + " }"
)
SET_WISHES = """mutation($id: ID!, $slots: [ID!]!, $team: ID, $users: [ID!], $seen: DateTime) {
  setWishes(campaignId: $id, slotIds: $slots, teamId: $team, userIds: $users
    expectedChangedAt: $seen) { __typename
  ... on WishesSaved { wishes { ranked { slotId slot { title } } userIds salt changedAt } }
  ... on Refusal { code } ... on NotTeammate { userId }
  ... on InvalidInput { fields { field code } } } }"""
THE_DRAW = """query($id: ID!) { draw(campaignId: $id) { recordId state root seed { text } isWritten
  acts { state reason by { id } } } }"""
MY_WISHES = "query($id: ID!) { myWishes(campaignId: $id) { ranked { slotId } } }"
DEMAND = """query($id: ID!) { wishStatistics(campaignId: $id) {
  slotId wishes firstWishes slot { title } } }"""
PREVIEW = """query($id: ID!, $capacities: [WhatIfCapacity!], $max: Int) {
  previewDraw(campaignId: $id, capacities: $capacities, maxBookings: $max) {
  measures { method users withoutPlace places averageRank envious }
  slots { slotId capacity booked granted refused } } }"""
ENTRY = """{ salt leaf memberCount notEligible lot lotteryNumber
  wishes { rank slotId result round lastNumberServed group notBooked conflict { id } } } }"""
RESULT = "query($id: ID!) { myDrawResult(campaignId: $id) " + ENTRY
RESULT_OF = (
    """query($id: ID!, $user: ID!) {
  drawResult(campaignId: $id, userId: $user) """
    + ENTRY
)
DRAWS = (
    """query($id: ID!, $user: ID) { draws(campaignId: $id) { recordId state supersedesId
  myResult(userId: $user) """
    + ENTRY
    + " }"
)
RECORD = "query($id: ID!) { drawRecord(drawId: $id) }"

BookingMethod = Callable[[BookingClient, BookingClient, str], Coroutine[Any, Any, Json]]


def campaign_fields(**fields: Any) -> Json:
    """Return the input of a published campaign that opened two hours ago, with these fields."""
    times = {"opensAt": hours_from_now(-2), "closesAt": hours_from_now(20)}
    return {"name": "Courses", "published": True, **times, **fields}


async def create_campaign(organizer: GraphQLTestClient, **fields: Any) -> str:
    """Create a campaign with these fields and return its id."""
    created = await organizer.execute(CREATE_CAMPAIGN, input=campaign_fields(**fields))
    assert created["__typename"] == "Campaign", created
    return str(created["id"])


async def update_campaign(organizer: GraphQLTestClient, campaign_id: str, **changes: Any) -> Json:
    """Change a campaign and return it."""
    updated: Json = await organizer.execute(
        UPDATE_CAMPAIGN, input={"campaignId": campaign_id, **changes}
    )
    assert updated["__typename"] == "Campaign", updated
    return updated


async def publish_campaign(organizer: GraphQLTestClient, campaign_id: str) -> None:
    """Publish a campaign."""
    assert (await organizer.execute(PUBLISH_CAMPAIGN, id=campaign_id))["published"] is True


async def unpublish_campaign(organizer: GraphQLTestClient, campaign_id: str) -> None:
    """Unpublish a campaign."""
    assert (await organizer.execute(UNPUBLISH_CAMPAIGN, id=campaign_id))["published"] is False


async def set_groups(organizer: GraphQLTestClient, user: BookingClient, *groups: str) -> None:
    """Replace the groups of a user."""
    fields = {"userId": await user.fetch_user_id(), "groups": groups}
    assert (await organizer.execute(SET_GROUPS, input=fields))["__typename"] == "User"


async def until_draw(client: BookingClient, campaign_id: str, field: str) -> Json:
    """Wait for a field of the draw of a campaign, which the worker sets, and return the draw."""

    async def read() -> Any:
        return await client.execute(THE_DRAW, id=campaign_id)

    return dict(await poll_until(read, lambda draw: draw[field], f"the draw has {field}"))


async def book_with_refusal(client: GraphQLTestClient, slot_id: str, **options: Any) -> Json:
    """Book a place and return the result with the details of a refusal."""
    fields = {"slotId": slot_id, "waitMs": LOCK_WAIT_MS, **options}
    outcome: Json = await client.execute(BOOK_WITH_REFUSAL, input=fields)
    return outcome


async def _claim_with_another(
    client: BookingClient, organizer: BookingClient, slot_id: str
) -> Json:
    """Book the slot together with another one and return the refusal of its claim, if any."""
    other_slot_id = await organizer.add_slot(**times_in(900))
    claims = [{"slotId": other_slot_id}, {"slotId": slot_id}]
    outcome: Json = await client.execute(BOOK_SEVERAL_WITH_REFUSALS, input={"claims": claims})
    if outcome["__typename"] != "ClaimsRefused":
        return outcome
    (claim_refusal,) = outcome["refusals"]
    assert claim_refusal["claim"] == 1
    refusal: Json = claim_refusal["refusal"]
    return refusal


async def move_from_elsewhere(
    client: BookingClient, organizer: BookingClient, slot_id: str
) -> Json:
    """Move a booking to the slot from a slot without a campaign and return the result."""
    other_slot_id = await organizer.add_slot(**times_in(900))
    booking = (await client.book_slot(other_slot_id))["booking"]
    fields = {"bookingId": booking["id"], "slotId": slot_id}
    outcome: Json = await client.execute(MOVE_WITH_REFUSAL, input=fields)
    return outcome


async def join_waitlist(client: BookingClient, organizer: BookingClient, slot_id: str) -> Json:
    """Join the waitlist and return the result."""
    outcome: Json = await client.execute(JOIN_WITH_REFUSAL, slot=slot_id)
    return outcome


async def _book(client: BookingClient, organizer: BookingClient, slot_id: str) -> Json:
    return await book_with_refusal(client, slot_id, waitMs=0)


async def _hold(client: BookingClient, organizer: BookingClient, slot_id: str) -> Json:
    return await book_with_refusal(client, slot_id, hold=True, waitMs=0)


async def _book_and_wait(client: BookingClient, organizer: BookingClient, slot_id: str) -> Json:
    return await book_with_refusal(client, slot_id, waitMs=5000)


# The ways to get a place, by their names in test ids.
BOOKING_METHODS: dict[str, BookingMethod] = {
    "booking": _book,
    "holding": _hold,
    "waiting for the lock": _book_and_wait,
    "with another claim": _claim_with_another,
    "moving": move_from_elsewhere,
}
BOOKING_AND_WAITLIST_METHODS: dict[str, BookingMethod] = {
    **BOOKING_METHODS,
    "joining the waitlist": join_waitlist,
}
