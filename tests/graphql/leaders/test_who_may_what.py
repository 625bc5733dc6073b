"""Who may what in a course that a user leads: each right by each kind of user."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import CHECK_IN, MARK_NO_SHOW, UNDO_CHECK_IN, fetch_code
from tests.support.clients.booking_client import (
    BOOK_WITH_OPTIONS,
    BOOKING_BY_ID,
    CONFIRM_BOOKING,
    EXTEND_HOLD,
    JOIN_WAITLIST,
    LEAVE_WAITLIST,
    MOVE_BOOKING,
    SLOT_HISTORY,
    UPDATE_SLOT,
    BookingClient,
)
from tests.support.clients.client import SLOT_ROSTER, Json, open_websocket
from tests.support.scenarios.led_course import (
    CREATE_LED,
    KINDS,
    LedCourse,
    change_document,
    led_course,
)

# Everything of a booking and its user that not everybody sees.
ROSTER = """query($slot: ID!) { slotRoster(slotId: $slot) { nodes {
  id status attendance madeAs overriddenRefusals checkInCode
  onBehalf waitedSince madeBy { id } history { at } calendarUrl
  user { id name groups email username role locale hasPassword banned selfRegistered }
} } }"""
WAITLIST = """query($slot: ID!) { slotWaitlist(slotId: $slot) { nodes {
  position waitlistedBy { id } user { id groups email } slot { isLedByMe }
} } }"""
RECIPIENTS = """query($slotId: ID, $campaignId: ID, $includeWaiting: Boolean! = false) {
  announcementRecipientCount(
    slotId: $slotId, campaignId: $campaignId, includeWaiting: $includeWaiting
  )
}"""
LED = """query($past: Boolean! = true) {
  slots(filter: {ledByMe: true, includePast: $past}) { nodes { id isLedByMe } }
}"""
IS_LED = "query($slot: ID!) { slot(id: $slot) { isLedByMe resources { leader { id } } } }"
SET_GROUPS = """mutation($id: ID!) {
  setGroups(input: {userId: $id, groups: ["5a"]}) { __typename }
}"""
USERS = "{ users { nodes { id } } }"

# Each row is a right, and who has it.
MATRIX = """
                        self guardian parted sibling teammate leader other former member organizer
roster                  no   no       no     no      no       yes    no    no     no     yes
waiting list            no   no       no     no      no       yes    no    no     no     yes
attendance              no   no       no     no      no       yes    no    no     no     yes
no-show                 no   no       no     no      no       yes    no    no     no     yes
door                    no   no       no     no      no       yes    no    no     no     yes
mail to the course      no   no       no     no      no       yes    no    no     no     yes
mail to those who wait  no   no       no     no      no       no     no    no     no     yes
mail to a campaign      no   no       no     no      no       no     no    no     no     yes
ended bookings          no   no       no     no      no       no     no    no     no     yes
the booking itself      yes  yes      no     no      no       no     no    no     no     yes
confirm it              yes  yes      no     no      no       no     no    no     no     yes
extend it               yes  yes      no     no      no       no     no    no     no     yes
move it                 yes  yes      no     no      no       no     no    no     no     yes
book for the user       yes  yes      no     no      yes      no     no    no     no     yes
wait for the user       yes  yes      no     no      no       no     no    no     no     yes
take off the list       yes  yes      no     no      no       no     no    no     no     yes
edit the course         no   no       no     no      no       no     no    no     no     yes
search for users        no   no       no     no      no       no     no    no     no     yes
"""


async def requests(course: LedCourse) -> dict[str, tuple[str, Json]]:
    """Return a request for each right; one that is granted changes nothing that others ask for."""
    slot, booking, user = course.slot_id, course.booking_id, course.user_ids["self"]
    code = await fetch_code(course.clients["organizer"], booking)
    return {
        "roster": (SLOT_ROSTER, {"slot": slot}),
        "waiting list": (WAITLIST, {"slot": slot}),
        "attendance": (UNDO_CHECK_IN, {"booking": booking, "meeting": None}),
        "no-show": (MARK_NO_SHOW, {"booking": booking, "meeting": None}),
        "door": (CHECK_IN, {"input": {"code": code, "slotId": slot}}),
        "mail to the course": (RECIPIENTS, {"slotId": slot}),
        "mail to those who wait": (RECIPIENTS, {"slotId": slot, "includeWaiting": True}),
        "mail to a campaign": (RECIPIENTS, {"campaignId": "campaign_" + "0" * 24}),
        "ended bookings": (SLOT_HISTORY, {"slot": slot}),
        "the booking itself": (BOOKING_BY_ID, {"id": booking}),
        "confirm it": (CONFIRM_BOOKING, {"booking": booking}),
        "extend it": (EXTEND_HOLD, {"booking": booking}),
        "move it": (MOVE_BOOKING, {"input": {"bookingId": booking, "slotId": slot}}),
        "book for the user": (BOOK_WITH_OPTIONS, {"input": {"slotId": slot, "userId": user}}),
        "wait for the user": (JOIN_WAITLIST, {"slot": slot, "user": user}),
        "take off the list": (LEAVE_WAITLIST, {"slot": slot, "user": user}),
        "edit the course": (UPDATE_SLOT, {"input": {"slotId": slot}}),
        "search for users": (USERS, {}),
    }


async def is_granted(client: BookingClient, document: str, variables: Json) -> bool:
    """Return whether a request is granted, or fails for a reason that is not its sender."""
    result = await client.send(document, **variables)
    if errors := result.get("errors"):
        assert errors[0]["extensions"]["code"] == "FORBIDDEN", errors
        return False
    (found,) = result["data"].values()
    code = found.get("code") if isinstance(found, dict) else found
    return found is not None and code not in ("NOT_TEAMMATE", "BOOKING_NOT_FOUND")


async def granted(course: LedCourse, *rights: str) -> dict[str, set[str]]:
    """Return the kinds of users that have each of these rights, by default of all."""
    return {
        right: {
            kind
            for kind, client in course.clients.items()
            if await is_granted(client, document, variables)
        }
        for right, (document, variables) in (await requests(course)).items()
        if not rights or right in rights
    }


def expected() -> dict[str, set[str]]:
    """Return the kinds of users that have each right by the table."""
    rows = [line for line in MATRIX.splitlines()[2:] if line]
    split = [(row[:24].strip(), row[24:].split()) for row in rows]
    return {
        right: {kind for kind, cell in zip(KINDS, cells, strict=True) if cell == "yes"}
        for right, cells in split
    }


async def test_each_right_is_that_of_the_users_in_the_table(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    assert await granted(course) == expected()


async def test_without_the_read_of_relations_others_have_the_rights_of_leaders_and_guardians(
    app: AppProcess, http: httpx.AsyncClient, log_dir: Path
) -> None:
    course, rights = await led_course(app, http), ("roster", "confirm it")
    with app_variant(app.environment, log_dir, without_guards="led-slots guardians") as unguarded:
        for client in course.clients.values():
            client.url = unguarded.url
        assert await granted(course, *rights) == dict.fromkeys(rights, frozenset(KINDS))


async def test_a_leader_reads_names_groups_and_attendance_and_no_address_booker_or_history(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    user = course.user_ids["self"]
    await organizer.execute(SET_GROUPS, id=user)
    assert (await mark_present(leader, course))["__typename"] == "CheckedIn"
    (seen,) = (await leader.execute(ROSTER, slot=course.slot_id))["nodes"]
    (whole,) = (await organizer.execute(ROSTER, slot=course.slot_id))["nodes"]
    assert seen["user"]["groups"] == whole["user"]["groups"] == ["5a"]
    shown = ("id", "status", "attendance", "madeAs", "overriddenRefusals", "checkInCode")
    assert {key: seen[key] for key in shown} == {key: whole[key] for key in shown}
    assert seen["attendance"] == "CHECKED_IN"
    assert {key: seen[key] for key in whole.keys() - shown - {"user"}} == {
        "onBehalf": False, "waitedSince": None, "madeBy": None, "history": [], "calendarUrl": None,
    }  # fmt: skip
    hidden = whole["user"].keys() - {"id", "name", "groups"}
    assert {key: seen["user"][key] for key in hidden} == dict.fromkeys(hidden)
    assert whole["user"]["email"]
    assert len(whole["history"]) == 2
    (waiting,) = (await leader.execute(WAITLIST, slot=course.slot_id))["nodes"]
    assert waiting == {
        "position": 1,
        "waitlistedBy": None,
        "user": {"id": course.user_ids["member"], "groups": [], "email": None},
        "slot": {"isLedByMe": True},
    }


async def mark_present(client: BookingClient, course: LedCourse) -> Json:
    """Check the user of the course in and return the result."""
    found: Json = await client.execute(CHECK_IN, input={"bookingId": course.booking_id})
    return found


async def test_a_code_of_another_course_names_nobody_to_a_leader(
    app: AppProcess, http: httpx.AsyncClient, log_dir: Path
) -> None:
    course = await led_course(app, http)
    code = await fetch_code(course.clients["organizer"], course.other_booking_id)
    at_door: dict[str, Any] = {"code": code, "slotId": course.slot_id}
    leader = course.clients["leader"]
    assert (await leader.execute(CHECK_IN, input=at_door))["code"] == "BOOKING_NOT_FOUND"
    assert await leader.error_code(CHECK_IN, input={"code": code}) == "FORBIDDEN"
    foreign = {"slot": course.other_slot_id}
    assert await leader.error_code(SLOT_ROSTER, **foreign) == "FORBIDDEN"
    assert await leader.error_code(SLOT_ROSTER, slot="slot_" + "0" * 24) == "FORBIDDEN"
    guard = "attendance-of-own-slots"
    with app_variant(app.environment, log_dir, without_guards=guard) as unguarded:
        leader.url = unguarded.url
        # The control: the result is the booking of a stranger.
        assert (await leader.execute(CHECK_IN, input=at_door))["__typename"] == "WrongSlot"


async def test_a_leader_finds_their_courses_until_ninety_days_after_the_end(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    assert await leader.execute(LED) == {"nodes": [{"id": course.slot_id, "isLedByMe": True}]}
    assert await leader.execute(IS_LED, slot=course.other_slot_id) == {
        "isLedByMe": False, "resources": [{"leader": None}],
    }  # fmt: skip
    assert (await leader.execute("{ me { leadsSlots } }"))["leadsSlots"] is True
    assert (await course.clients["member"].execute("{ me { leadsSlots } }"))["leadsSlots"] is False
    led = await organizer.execute(IS_LED, slot=course.slot_id)
    assert led == {"isLedByMe": False, "resources": [{"leader": {"id": course.user_ids["leader"]}}]}
    for days, found in ((89, [course.slot_id]), (91, [])):
        ended_at = datetime.now(UTC) - timedelta(days=days)
        change_document(app, "slots", course.slot_id, start=ended_at, end=ended_at)
        assert [each["id"] for each in (await leader.execute(LED))["nodes"]] == found
        assert await is_granted(leader, SLOT_ROSTER, {"slot": course.slot_id}) is bool(found)
        assert (await leader.execute(LED, past=False))["nodes"] == []


async def test_nobody_leads_what_is_not_published(app: AppProcess, http: httpx.AsyncClient) -> None:
    course = await led_course(app, http)
    roster, leader = (SLOT_ROSTER, {"slot": course.slot_id}), course.clients["leader"]
    for state, is_led in (
        *(({"status": "draft"}, False), ({"status": "published"}, True)),
        ({"campaign.published": False}, False),
    ):
        change_document(app, "slots", course.slot_id, **state)
        assert await is_granted(leader, *roster) is is_led


async def test_on_a_socket_each_operation_reads_anew_what_its_caller_leads(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    async with open_websocket(app, course.clients["leader"].token) as opened:
        await opened.subscribe("1", SLOT_ROSTER, slot=course.slot_id)
        assert len((await opened.next_result())["nodes"]) == 1
        assert (await opened.receive())["type"] == "complete"
        await course.set_leader("other")
        await opened.subscribe("2", SLOT_ROSTER, slot=course.slot_id)
        assert "FORBIDDEN" in str(await opened.receive())


async def test_only_a_vouched_user_leads_and_only_what_is_staff(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    organizer, user = course.clients["organizer"], course.user_ids["member"]
    room = await organizer.execute(CREATE_LED, name="Hall A", leader=user, kind="ROOM")
    assert room["fields"] == [{"field": "leaderId", "code": "LEADER_NOT_STAFF"}]
    unknown = await organizer.execute(CREATE_LED, name="Hall B", leader="user_" + "0" * 24)
    assert unknown["code"] == "USER_NOT_FOUND"
    change_document(app, "users", user, selfRegistered=True)
    assert (await course.set_leader("member"))["code"] == "SELF_REGISTERED"


async def test_a_new_name_leaves_the_leader_and_the_audit_log_names_each(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    organizer, leader = course.clients["organizer"], course.user_ids["leader"]
    renamed = await organizer.execute(
        "mutation($id: ID!, $name: String!) { updateResource(input: {resourceId: $id, name: $name})"
        " { ... on Resource { id leader { id } } } }",
        id=course.resource_id,
        name=f"Hill {leader[-8:]}",
    )
    assert renamed["leader"] == {"id": leader}
    assert await is_granted(course.clients["leader"], SLOT_ROSTER, {"slot": course.slot_id})
    log = await organizer.execute(
        "query($by: ID!) { auditLog(filter: {by: $by}, first: 50) { nodes { "
        "resourceName edits { field before after } } } }",
        by=course.user_ids["organizer"],
    )
    edits = [edit for node in log["nodes"] for edit in node["edits"] if edit["field"] == "leader"]
    former = course.user_ids["former"]
    assert {"field": "leader", "before": former, "after": leader} in edits
    assert (await course.set_leader(None))["leader"] is None
    assert not await is_granted(course.clients["leader"], SLOT_ROSTER, {"slot": course.slot_id})
