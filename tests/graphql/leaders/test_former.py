"""What ends with a lead, a guardianship or a role, also of what somebody has of it from before.

A right that is still there is the control of each answer: the same attempts, in the same scene.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from bson import ObjectId
from websockets.exceptions import ConnectionClosed

from slotlock.domain.users.user import Role
from tests.graphql.leaders.test_pupils import BOOKABLE, led_campaign
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    BOOK_SEVERAL,
    CANCEL_WITH_OPTIONS,
    CONFIRM_BOOKING,
    EXTEND_HOLD,
    JOIN_WAITLIST,
    LEAVE_WAITLIST,
    MOVE_BOOKING,
    BookingClient,
)
from tests.support.clients.campaigns import CONFIGURE, SET_WISHES, create_campaign
from tests.support.clients.client import Json, hours_from_now, open_websocket, times_in
from tests.support.clients.exports import create_export_link
from tests.support.clients.series import BOOK_SERIES, create_series
from tests.support.queue.documents import REQUEST_BOOKING
from tests.support.scenarios.families import create_family
from tests.support.scenarios.led_course import led_course
from tests.support.stores.empty_database import stored_database

# Each row is what somebody tries with what they got before, and the answer: after another one leads
# the course, or it has another resource, while they lead it, and after they were banned.
LEADERS = """
                           replaced           moved              leads             banned
next page of the roster    FORBIDDEN          FORBIDDEN          1                 UNAUTHENTICATED
next page of the pupils    FORBIDDEN          FORBIDDEN          1                 UNAUTHENTICATED
next of their courses      0                  0                  1                 UNAUTHENTICATED
link to the file           403                403                200               403
course in the calendar     404                gone               shown             404
camera at the door         403                400                400               401
open stream                False              False              True              closed
book a pupil               NOT_TEAMMATE       NOT_TEAMMATE       ALREADY_BOOKED    UNAUTHENTICATED
book several               CLAIMS_REFUSED     CLAIMS_REFUSED     AllBooked         UNAUTHENTICATED
book a series              NOT_TEAMMATE       NOT_TEAMMATE       SeriesBooked      UNAUTHENTICATED
ask the queue              NOT_TEAMMATE       NOT_TEAMMATE       ALREADY_BOOKED    UNAUTHENTICATED
extend what they hold      BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  HoldExtended      UNAUTHENTICATED
confirm what they hold     BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  BookingConfirmed  UNAUTHENTICATED
move what they booked      BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  SLOT_NOT_FOUND    UNAUTHENTICATED
cancel what they booked    BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  BookingCancelled  UNAUTHENTICATED
"""
# The last column is another guardian, after the child was erased.
GUARDIANS = """
                           removed            acts               banned            erased
next page of the bookings  FORBIDDEN          1                  UNAUTHENTICATED   FORBIDDEN
the booking                null               all                UNAUTHENTICATED   null
the booking that ended     null               all                UNAUTHENTICATED   null
the place in the line      null               WaitlistEntry      UNAUTHENTICATED   null
link to its calendar       404                200                404               404
booking in the own feed    gone               shown              404               gone
children in the own data   0                  1                  401               0
children in the account    0                  1                  UNAUTHENTICATED   0
family in an open stream   1                  2                  closed            1
key of the booking         bare               all                UNAUTHENTICATED   bare
key of the move            bare               all                UNAUTHENTICATED   bare
book                       NOT_TEAMMATE       ALREADY_BOOKED     UNAUTHENTICATED   NOT_TEAMMATE
book several               CLAIMS_REFUSED     AllBooked          UNAUTHENTICATED   CLAIMS_REFUSED
book a series              NOT_TEAMMATE       SeriesBooked       UNAUTHENTICATED   NOT_TEAMMATE
ask the queue              NOT_TEAMMATE       ALREADY_BOOKED     UNAUTHENTICATED   NOT_TEAMMATE
wait                       FORBIDDEN          ALREADY_WAITING    UNAUTHENTICATED   FORBIDDEN
leave the line             FORBIDDEN          WaitlistLeft       UNAUTHENTICATED   FORBIDDEN
wish                       NOT_TEAMMATE       WishesSaved        UNAUTHENTICATED   NOT_TEAMMATE
extend what they hold      BOOKING_NOT_FOUND  HoldExtended       UNAUTHENTICATED   BOOKING_NOT_FOUND
confirm what they hold     BOOKING_NOT_FOUND  BookingConfirmed   UNAUTHENTICATED   BOOKING_NOT_FOUND
move what they booked      BOOKING_NOT_FOUND  SLOT_NOT_FOUND     UNAUTHENTICATED   BOOKING_NOT_FOUND
cancel what they booked    BOOKING_NOT_FOUND  BookingCancelled   UNAUTHENTICATED   BOOKING_NOT_FOUND
"""
# Of what they booked as organizer for somebody, and what another organizer may. The last column is
# the control: bookings that do not say as what they were made.
ORGANIZERS = """
                           member             leads              organizer         unmarked
the booking                null               null               all               all
extend what they hold      BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  HoldExtended      NOT_HELD
confirm what they hold     BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  BookingConfirmed  BookingConfirmed
move what they moved       BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  SLOT_NOT_FOUND    SLOT_NOT_FOUND
cancel what they booked    BOOKING_NOT_FOUND  BOOKING_NOT_FOUND  BookingCancelled  BookingCancelled
the booking that ended     null               null               all               all
"""
SHOWN = "checkInCode calendarUrl history { at } madeBy { id } user { email }"
BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename ... on Refusal {{ code }} ... on Booked {{ booking {{ id {SHOWN} }} }} }} }}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  __typename ... on Refusal {{ code }} ... on BookingMoved {{ booking {{ {SHOWN} }} }} }} }}"""
NODE = f"query($id: ID!) {{ node(id: $id) {{ __typename ... on Booking {{ {SHOWN} }} }} }}"
PAGE = "{ nodes { id } pageInfo { endCursor } }"
ROSTER = f"""query($slot: ID!, $after: String) {{
  slotRoster(slotId: $slot, first: 1, after: $after) {PAGE} }}"""
LED = f"""query($after: String) {{
  slots(filter: {{ledByMe: true}}, first: 1, after: $after) {PAGE} }}"""
BOOKINGS = f"""query($user: ID!, $after: String) {{
  myBookings(userId: $user, first: 1, after: $after) {PAGE} }}"""
CAMPAIGN = "query($slot: ID!) { slot(id: $slot) { campaign { id } } }"
CHILDREN = "{ me { dependents { id } } }"
WISHES = "query($user: ID, $id: ID!) { myWishes(userId: $user, campaignId: $id) { userIds } }"
WATCH = """subscription($slot: ID!) { slotAvailability(slotIds: [$slot]) {
  capacity slot { isLedByMe familyPlaces { user { id } } } } }"""
CREATE_FEED = "mutation { createCalendarFeed { url } }"
BAN = "mutation($id: ID!) { banUser(userId: $id) { __typename } }"
SET_ROLE = (
    "mutation($id: ID!, $role: Role!) { setUserRole(userId: $id, role: $role) { __typename } }"
)
ERASE = "mutation($id: ID!) { eraseUser(userId: $id) { __typename } }"
NEVER = "slot_" + "0" * 24
Answers = dict[str, str]


def rows_of(table: str) -> dict[str, list[str]]:
    """Return the answers of a table by what is tried, without its head."""
    return {row[:27].rstrip(): row[27:].split() for row in table.splitlines()[2:]}


def side_by_side(*columns: Answers) -> dict[str, list[str]]:
    """Return the rows of these columns."""
    return {what: [column[what] for column in columns] for what in columns[0]}


async def answer(client: BookingClient, document: str, **variables: Any) -> str:
    """Send a document and return the code or the type of the result, or the length of the list.

    Of a booking, that is whether anything of it is shown that is not for everybody.
    """
    result = await client.send(document, **variables)
    if errors := result.get("errors"):
        return str(errors[0]["extensions"]["code"])
    (found,) = result["data"].values()
    if found is None:
        return "null"
    booking = found.get("booking", found)
    if "checkInCode" in booking:
        shown = [booking[each] for each in ("checkInCode", "calendarUrl", "history", "madeBy")]
        return "all" if any([booking["user"]["email"], *shown]) else "bare"
    if "__typename" in found:
        return str(found.get("code", found["__typename"]))
    (items,) = (value for value in found.values() if isinstance(value, list))
    return str(len(items))


async def status(client: BookingClient, path: str, method: str = "GET", **headers: str) -> str:
    """Send a request and return the status of the response."""
    response = await client.http.request(method, client.url + path, headers=headers)
    return str(response.status_code)


async def in_calendar(client: BookingClient, path: str, global_id: str) -> str:
    """Return whether a calendar has a slot or a booking, or the status if there is none."""
    response = await client.http.get(client.url + path)
    if response.status_code != 200:
        return str(response.status_code)
    return "shown" if global_id[-24:] in response.text else "gone"


async def cursor(client: BookingClient, document: str, **variables: Any) -> str:
    """Return the cursor at the end of the first page of a list."""
    return str((await client.execute(document, **variables))["pageInfo"]["endCursor"])


async def open_while(
    app: AppProcess, reader: BookingClient, slot_id: str, change: Awaitable[object]
) -> Json | None:
    """Return what the stream of a slot shows after a change that it was open for; None if closed.

    The change is that of the slot, too.
    """
    async with open_websocket(app, reader.token) as opened:
        await opened.subscribe("1", WATCH, slot=slot_id)
        before = await opened.next_result()
        await change
        try:
            while (event := await opened.next_result())["capacity"] == before["capacity"]:
                pass
        except ConnectionClosed:
            return None
        slot: Json = event["slot"]
        return slot


async def test_former_leaders_have_what_the_table_says(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    pupil, second = course.user_ids["self"], course.user_ids["member"]
    campaign_id = (await organizer.execute(CAMPAIGN, slot=slot_id))["campaign"]["id"]
    fields = {"capacity": 5, "campaignId": campaign_id, "resource": course.resource}
    free = await organizer.add_slot(**fields, **times_in(60))
    series = await create_series(organizer, "FREQ=WEEKLY;COUNT=1", **fields)
    slots = [slot_id, free, *(each["id"] for each in series["slots"])]
    booked = (await leader.book_slot(slot_id, userId=pupil))["booking"]["id"]
    held = (await leader.hold(slot_id, userId=second))["id"]
    in_roster = await cursor(leader, ROSTER, slot=slot_id)
    in_pupils = await cursor(leader, BOOKABLE, slot=slot_id, first=1)
    in_led = await cursor(leader, LED)
    link = await create_export_link(leader, slot_id)
    feed = (await leader.execute(CREATE_FEED))["url"].removesuffix(".ics")
    frames = {**leader.headers, "Content-Type": "application/octet-stream"}
    capacity = 5

    async def give(resource: str, **more: Any) -> None:
        """Give the slots another resource, and one of them another capacity."""
        nonlocal capacity
        capacity += 1
        for each in slots:
            await organizer.update_slot(each, resource=resource)
        if leads := more.get("leader"):
            await course.set_leader(leads)
        if more.get("is_banned"):
            await organizer.execute(BAN, id=course.user_ids["leader"])
        await organizer.update_slot(slot_id, capacity=capacity)

    async def attempts(change: Awaitable[None]) -> Answers:
        shown = await open_while(app, leader, slot_id, change)
        claims = [{"slotId": free, "userId": each} for each in (pupil, second)]
        booking = {"slotId": slot_id, "userId": pupil}
        dates = {"seriesId": series["seriesId"], "userId": pupil}
        moved = {"bookingId": booked, "slotId": other_id}
        return {
            "next page of the roster": await answer(leader, ROSTER, slot=slot_id, after=in_roster),
            "next page of the pupils": await answer(
                leader, BOOKABLE, slot=slot_id, first=1, after=in_pupils
            ),
            "next of their courses": await answer(leader, LED, after=in_led),
            "link to the file": await status(leader, link),
            "course in the calendar": await in_calendar(
                leader, f"{feed}/resources/{course.resource_id}.ics", slot_id
            ),
            "camera at the door": await status(leader, "/check-in/frames", "POST", **frames),
            "open stream": "closed" if shown is None else str(shown["isLedByMe"]),
            "book a pupil": await answer(leader, BOOK, input=booking),
            "book several": await answer(leader, BOOK_SEVERAL, input={"claims": claims}),
            "book a series": await answer(leader, BOOK_SERIES, input=dates),
            "ask the queue": await answer(leader, REQUEST_BOOKING, input=booking),
            "extend what they hold": await answer(leader, EXTEND_HOLD, booking=held),
            "confirm what they hold": await answer(leader, CONFIRM_BOOKING, booking=held),
            "move what they booked": await answer(leader, MOVE_BOOKING, input=moved),
            "cancel what they booked": await answer(leader, CANCEL_WITH_OPTIONS, booking=booked),
        }

    replaced = await attempts(give(course.resource, leader="other"))
    moved = await attempts(give(course.other_resource, leader="leader"))
    leads = await attempts(give(course.resource))
    banned = await attempts(give(course.resource, is_banned=True))
    assert side_by_side(replaced, moved, leads, banned) == rows_of(LEADERS)


async def test_former_guardians_have_what_the_table_says(
    app: AppProcess, http: httpx.AsyncClient, admin: BookingClient
) -> None:
    family = await create_family(app, http)
    family.set_guardians("sibling")
    organizer, child_id = family.clients["organizer"], family.user_ids["child"]
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(-1))
    wished = await organizer.add_slot(campaignId=campaign_id)
    until = hours_from_now(1)
    await organizer.execute(CONFIGURE, input={"campaignId": campaign_id, "wishesUntil": until})
    series_id = (await create_series(organizer, "FREQ=WEEKLY;COUNT=1", capacity=5))["seriesId"]

    async def begin(kind: str) -> Callable[[Awaitable[object]], Awaitable[Answers]]:
        """Let a guardian get everything, and return what they then try after a change."""
        me = family.clients[kind]
        made, held, left, goal, free, full = [
            await organizer.add_slot(capacity=2, waitlistCapacity=1) for _ in range(6)
        ]
        for _ in range(2):
            await organizer.book_slot(full, userId=family.user_ids["member"])
            await organizer.book_slot(full)
        booking = {"slotId": made, "userId": child_id, "idempotencyKey": "book"}
        booked = (await me.execute(BOOK, input=booking))["booking"]
        hold = (await me.hold(held, userId=child_id))["id"]
        gone = (await me.book_slot(left, userId=child_id))["booking"]["id"]
        move = {"bookingId": gone, "slotId": goal, "idempotencyKey": "move"}
        assert (await me.execute(MOVE, input=move))["__typename"] == "BookingMoved"
        entry = (await me.join(full, child_id))["entry"]["id"]
        in_bookings = await cursor(me, BOOKINGS, user=child_id)
        feed = (await me.execute(CREATE_FEED))["url"]

        async def attempts(change: Awaitable[object]) -> Answers:
            async def change_both() -> None:
                await change
                await organizer.update_slot(made, capacity=slot["capacity"] + 1)

            slot = await organizer.fetch_slot(made)
            shown = await open_while(app, me, made, change_both())
            data = await http.get(me.url + "/personal-data", headers=me.headers)
            child, place = {"user": child_id}, {"slotId": made, "userId": child_id}
            claims = [{"slotId": free, "userId": child_id}]
            dates = {"seriesId": series_id, "userId": child_id}
            never = {"bookingId": booked["id"], "slotId": NEVER}
            wishes = {"id": campaign_id, "slots": [wished], "users": [child_id]}
            return {
                "next page of the bookings": await answer(me, BOOKINGS, after=in_bookings, **child),
                "the booking": await answer(me, NODE, id=booked["id"]),
                "the booking that ended": await answer(me, NODE, id=gone),
                "the place in the line": await answer(me, NODE, id=entry),
                "link to its calendar": await status(me, booked["calendarUrl"]),
                "booking in the own feed": await in_calendar(me, feed, booked["id"]),
                "children in the own data": str(
                    len(data.json()["dependents"]) if data.is_success else data.status_code
                ),
                "children in the account": await answer(me, CHILDREN),
                "family in an open stream": str(len(shown["familyPlaces"])) if shown else "closed",
                "key of the booking": await answer(me, BOOK, input=booking),
                "key of the move": await answer(me, MOVE, input=move),
                "book": await answer(me, BOOK, input=place),
                "book several": await answer(me, BOOK_SEVERAL, input={"claims": claims}),
                "book a series": await answer(me, BOOK_SERIES, input=dates),
                "ask the queue": await answer(me, REQUEST_BOOKING, input=place),
                "wait": await answer(me, JOIN_WAITLIST, slot=full, **child),
                "leave the line": await answer(me, LEAVE_WAITLIST, slot=full, **child),
                "wish": await answer(me, SET_WISHES, **wishes),
                "extend what they hold": await answer(me, EXTEND_HOLD, booking=hold),
                "confirm what they hold": await answer(me, CONFIRM_BOOKING, booking=hold),
                "move what they booked": await answer(me, MOVE_BOOKING, input=never),
                "cancel what they booked": await answer(
                    me, CANCEL_WITH_OPTIONS, booking=booked["id"]
                ),
            }

        return attempts

    async def set_guardians(*kinds: str) -> None:
        family.set_guardians("child", *kinds)

    as_mother, as_father = await begin("mother"), await begin("father")
    removed = await as_mother(set_guardians("father"))
    acts = await as_mother(set_guardians("mother", "father"))
    banned = await as_mother(organizer.execute(BAN, id=family.user_ids["mother"]))
    erased = await as_father(admin.execute(ERASE, id=child_id))
    assert side_by_side(removed, acts, banned, erased) == rows_of(GUARDIANS)


async def test_former_organizers_have_what_the_table_says(
    app: AppProcess, http: httpx.AsyncClient, admin: BookingClient
) -> None:
    course = await led_course(app, http)
    me, organizer = course.clients["leader"], course.clients["organizer"]

    async def set_role(role: Role) -> None:
        changed = await admin.execute(SET_ROLE, id=course.user_ids["leader"], role=role.name)
        assert changed["__typename"] == "User"

    slots = []
    for hours in (30, 40, 50, 60):
        fields = {"resource": course.resource, "capacity": 5, "holdMinutes": 5, **times_in(hours)}
        slots.append(await organizer.add_slot(**fields))
    made, held, left, goal = slots
    pupil = {"userId": course.user_ids["member"]}
    await set_role(Role.ORGANIZER)
    booked, gone = [(await me.book_slot(each, **pupil))["booking"]["id"] for each in (made, left)]
    hold = (await me.hold(held, **pupil))["id"]
    moved = (await me.move(gone, goal))["booking"]["id"]

    async def attempts(client: BookingClient) -> Answers:
        never = {"bookingId": moved, "slotId": NEVER}
        return {
            "the booking": await answer(client, NODE, id=booked),
            "extend what they hold": await answer(client, EXTEND_HOLD, booking=hold),
            "confirm what they hold": await answer(client, CONFIRM_BOOKING, booking=hold),
            "move what they moved": await answer(client, MOVE_BOOKING, input=never),
            "cancel what they booked": await answer(client, CANCEL_WITH_OPTIONS, booking=booked),
            "the booking that ended": await answer(client, NODE, id=gone),
        }

    await set_role(Role.MEMBER)
    await course.set_leader("other")
    as_member = await attempts(me)
    await course.set_leader("leader")
    leads = await attempts(me)
    by_other = await attempts(organizer)
    await course.set_leader("other")
    database = stored_database(app.environment["SLOTLOCK_MONGO_URL"])
    ids = [ObjectId(each[-24:]) for each in slots]
    unmarked = {"$unset": {"bookings.$[].madeAs": 0}}
    database["slots"].update_many({"_id": {"$in": ids}}, unmarked)
    database["ended_bookings"].update_many({"slot": {"$in": ids}}, {"$unset": {"madeAs": 0}})
    columns = as_member, leads, by_other, await attempts(me)
    assert side_by_side(*columns) == rows_of(ORGANIZERS)


async def test_a_former_guardian_ends_the_own_wishes_and_not_those_of_the_child(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    family = await create_family(app, http)
    organizer, mother, child_id = (
        family.clients["organizer"], family.clients["mother"], family.user_ids["child"],
    )  # fmt: skip
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(-1))
    slots = [await organizer.add_slot(campaignId=campaign_id) for _ in range(2)]
    until = hours_from_now(1)
    await organizer.execute(CONFIGURE, input={"campaignId": campaign_id, "wishesUntil": until})
    for after in ([], slots[:1]):
        family.set_guardians("child", "mother", "father")
        together = {"slots": slots, "users": [family.user_ids["mother"], child_id]}
        saved = await mother.execute(SET_WISHES, id=campaign_id, **together)
        assert saved["__typename"] == "WishesSaved"
        family.set_guardians("child", "father")
        own = await mother.execute(SET_WISHES, id=campaign_id, slots=after)
        assert (own["wishes"] or {}).get("userIds") == (
            [family.user_ids["mother"]] if after else None
        )
        of_child = await family.clients["father"].execute(WISHES, id=campaign_id, user=child_id)
        assert of_child == {"userIds": [child_id]}
