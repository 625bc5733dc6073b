"""The files and calendars of a course, as those get them who lead it, and nobody else."""

import secrets
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from bson import ObjectId

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    CREATE_LINK,
    csv_rows,
    get_checked,
    load_workbook_bytes,
    set_name_and_groups,
)
from tests.support.scenarios.led_course import KINDS, LedCourse, change_document, led_course

CREATE_FEED = "mutation { createCalendarFeed { url } }"
RESOURCE = "query($slot: ID!) { slot(id: $slot) { resources { id } } }"


async def is_granted(client: BookingClient, path: str, method: str = "GET", **sent: Any) -> bool:
    """Return whether a request is not refused for its sender."""
    response = await client.http.request(method, f"{client.url}/{path}", **sent)
    assert response.status_code in (200, 400, 403, 404, 422), response.text
    return response.status_code in (200, 400, 422)


async def granted(course: LedCourse) -> dict[str, set[str]]:
    """Return the kinds of users that get each file and each other thing."""
    slot, csv = course.slot_id, f"exports/slots/{course.slot_id}.csv"
    data = f"personal-data/{course.user_ids['self']}"
    resource = await course.clients["self"].execute(RESOURCE, slot=slot)
    calendar = f"resources/{resource['resources'][0]['id']}.ics"
    campaign = f"exports/campaigns/{await create_campaign(course.clients['organizer'])}"
    found: dict[str, set[str]] = {}
    for kind, client in course.clients.items():
        feed = (await client.execute(CREATE_FEED))["url"].removesuffix(".ics").lstrip("/")
        link = await client.send(CREATE_LINK, id=slot, format="PDF")
        octets = {**client.headers, "Content-Type": "application/octet-stream"}
        csv_type = {**client.headers, "Content-Type": "text/csv"}
        for name, is_found in (
            (
                "files",
                await is_granted(client, csv, headers=client.headers),
            ),
            ("link", "errors" not in link),
            ("calendar", await is_granted(client, f"{feed}/{calendar}")),
            # An empty frame is none, which who may send one learns.
            ("camera", await is_granted(client, "check-in/frames", "POST", headers=octets)),
            ("campaign", await is_granted(client, f"{campaign}.csv", headers=client.headers)),
            ("courses", await is_granted(client, f"{campaign}/slots.csv", headers=client.headers)),
            ("created", await is_granted(client, f"{feed}/organized.ics")),
            ("data", await is_granted(client, data, headers=client.headers)),
            ("import", await is_granted(client, "users/import", "POST", headers=csv_type)),
            ("new courses", await is_granted(client, "slots/import", "POST", headers=csv_type)),
        ):
            found.setdefault(name, set()).update({kind} if is_found else ())
    return found


async def test_leaders_get_the_files_and_the_calendar_of_their_own_course_only(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course = await led_course(app, http)
    of_course = {"leader", "organizer"}
    assert await granted(course) == {
        "files": of_course,
        "link": of_course,
        "calendar": of_course,
        "camera": {*of_course, "other"},
        "data": {"self"},
        **dict.fromkeys(("campaign", "courses", "created"), frozenset({"organizer"})),
        **dict.fromkeys(("import", "new courses"), frozenset({"organizer"})),
    }
    assert len(KINDS) == len(course.clients)
    leader = course.clients["leader"]
    for path in ("slots/slot_" + "0" * 24 + ".csv", "campaigns/campaign_" + "0" * 24 + ".csv", "x"):
        response = await get_checked(leader, f"exports/{path}")
        assert response.status_code == 403, path


@pytest.mark.parametrize("language", ["", "?language=de"])
async def test_the_files_of_a_leader_have_no_address_and_no_booker(
    app: AppProcess, http: httpx.AsyncClient, language: str
) -> None:
    course = await led_course(app, http)
    url, tag = app.environment["SLOTLOCK_MONGO_URL"], secrets.token_hex(4)
    for kind in ("self", "member", "organizer", "teammate", "other"):
        await set_name_and_groups(url, course.clients[kind], f"{kind} {tag}", "5a")
    guardians = [ObjectId(course.user_ids[kind][-24:]) for kind in ("teammate", "other")]
    for kind in ("self", "member"):
        change_document(app, "users", course.user_ids[kind], guardians=guardians)
    made = {"at": datetime.now(UTC), "by": guardians[0], "action": "booked", "status": "confirmed"}
    by_guardian = {"bookings.0.madeAs": "guardian", "bookings.0.history": [made]}
    change_document(app, "slots", course.slot_id, **by_guardian)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    await organizer.leave(course.slot_id, course.user_ids["member"])
    await organizer.join(course.slot_id, course.user_ids["member"])  # put on the list by Olga
    for client, sees_all in ((leader, False), (organizer, True)):
        csv = (await get_checked(client, f"exports/slots/{course.slot_id}.csv{language}")).content
        xlsx = (await get_checked(client, f"exports/slots/{course.slot_id}.xlsx{language}")).content
        sheets = load_workbook_bytes(xlsx).worksheets
        texts = [str(cell.value) for sheet in sheets for row in sheet.rows for cell in row]
        for shown in (csv.decode(), "\n".join(texts)):
            assert f"self {tag}" in shown
            assert f"member {tag}" in shown
            assert ("@" in shown) is (f"organizer {tag}" in shown) is sees_all
            assert shown.count(f"teammate {tag};other {tag}") == (2 if sees_all else 0)
            assert (("Eltern" if language else "GUARDIAN") in shown) is sees_all
        hidden = {"email", "created_by", "made_as", "guardians"}
        hidden = {"E-Mail oder Benutzername", "Gebucht als"} if language else hidden
        assert hidden.isdisjoint(csv_rows(csv)[0]) is not sees_all
