"""Links to exports: what they open, for whom and how long."""

from datetime import UTC, datetime, timedelta
from io import BytesIO

import httpx
import jwt
import pytest
from pypdf import PdfReader

from slotlock.auth.export_links import EXPORT_LINK_TTL
from tests.support.apps.processes import SECRET, Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    CREATE_LINK,
    FILE_NAME,
    RosterUsers,
    create_export_link,
    csv_rows,
)


async def follow(client: BookingClient, path: str) -> httpx.Response:
    """Follow a link as a browser does: without a header that names the user."""
    return await client.http.get(client.url + path)


def altered_claims(path: str, **changes: object) -> str:
    """Return a link like this one with other claims and a valid signature."""
    token = path.rpartition("/")[2]
    claims = jwt.decode(token, options={"verify_signature": False})
    return "/exports/links/" + jwt.encode({**claims, **changes}, SECRET, "HS256")


@pytest.mark.parametrize(("file_format", "start"), [("CSV", b"\xef\xbb\xbf"), ("XLSX", b"PK"),
                                                    ("PDF", b"%PDF")])  # fmt: skip
async def test_a_link_opens_its_file_without_a_header_and_leaves_no_trace(
    users: RosterUsers, file_format: str, start: bytes
) -> None:
    organizer = users.organizer
    slot_id = await organizer.add_slot()
    response = await follow(organizer, await create_export_link(organizer, slot_id, file_format))
    assert (response.status_code, response.content[: len(start)]) == (200, start)
    assert FILE_NAME.fullmatch(response.headers["content-disposition"])
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["referrer-policy"] == "no-referrer"


async def test_head_returns_the_headers_and_leaves_the_link_open(users: RosterUsers) -> None:
    organizer = users.organizer
    path = await create_export_link(organizer, await organizer.add_slot())
    head = await organizer.http.head(organizer.url + path)
    got = await follow(organizer, path)
    assert (head.status_code, head.content) == (got.status_code, b"") == (200, b"")
    for name in ("content-length", "content-type", "content-disposition", "cache-control"):
        assert head.headers[name] == got.headers[name]
    assert (await organizer.http.head(f"{organizer.url}/exports/links/x")).status_code == 403


async def test_a_link_expires_after_five_minutes(users: RosterUsers) -> None:
    organizer = users.organizer
    link = await organizer.execute(CREATE_LINK, id=await organizer.add_slot(), format="CSV")
    lifetime = datetime.fromisoformat(link["expiresAt"]) - datetime.now(UTC)
    assert lifetime <= EXPORT_LINK_TTL
    expired = altered_claims(link["url"], exp=datetime.now(UTC) - timedelta(minutes=1))
    response = await follow(organizer, expired)
    assert (response.status_code, response.json()["code"]) == (410, "LINK_EXPIRED")
    assert "expired" in response.text


async def test_an_altered_link_or_another_kind_of_token_opens_nothing(users: RosterUsers) -> None:
    organizer = users.organizer
    path = await create_export_link(organizer, await organizer.add_slot())
    signature_start = path.rindex(".") + 1
    other = "A" if path[signature_start] != "A" else "B"
    for link in (
        path[:signature_start] + other + path[signature_start + 1 :],
        path[:-5],
        f"/exports/links/{organizer.token}",
        "/exports/links/x",
        "/exports/links/%FF%00",
        "/exports/links/" + "x" * 3000,
        altered_claims(path, typ="access"),
        altered_claims(path, export=None),
        altered_claims(path, export=["slots"]),
    ):
        response = await follow(organizer, link)
        assert response.status_code == 403, link
        assert "not valid" in response.text
    unknown = altered_claims(path, export="../../etc/passwd")
    assert (await follow(organizer, unknown)).status_code == 404
    token = path.rpartition("/")[2]
    bearer = BookingClient(organizer.http, organizer.url, token)
    assert await bearer.error_code("{ me { id } }") == "UNAUTHENTICATED"
    posted = await organizer.http.post(organizer.url + path)
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")


async def test_a_link_ends_with_the_session_that_created_it(users: RosterUsers) -> None:
    organizer = users.organizer
    path = await create_export_link(organizer, await organizer.add_slot())
    await organizer.execute("mutation { logout }")
    response = await follow(organizer, path)
    assert (response.status_code, "session" in response.text) == (403, True)


async def test_a_link_ends_when_its_user_is_no_organizer_any_more(
    two_apps: Pair, users: RosterUsers
) -> None:
    ada, organizer = users.ada, users.organizer
    path = await create_export_link(organizer, await organizer.add_slot())
    claims = jwt.decode(ada.token or "", options={"verify_signature": False})
    of_member = altered_claims(path, sub=claims["sub"], sid=claims["sid"])
    unknown = altered_claims(of_member, export=f"slots/slot_{'0' * 24}.csv")
    for link in (of_member, unknown):  # before anything is looked for or built
        response = await follow(organizer, link)
        assert (response.status_code, "organizers" in response.text) == (403, True)


async def test_the_choices_of_a_link_come_before_those_of_its_address_and_reader(
    users: RosterUsers,
) -> None:
    organizer = users.organizer
    slot_id = await organizer.add_slot()
    for file_format, choice in (("CSV", {"separator": "SEMICOLON"}), ("PDF", {"language": "DE"})):
        link = await organizer.execute(CREATE_LINK, id=slot_id, format=file_format, **choice)
        response = await organizer.http.get(
            f"{organizer.url}{link['url']}?separator=comma&language=en",
            headers={"accept-language": "fr"},
        )
        if file_format == "CSV":
            assert response.content.splitlines()[0].count(b";") > 10
        else:
            page = PdfReader(BytesIO(response.content)).pages[0].extract_text()
            assert "Unterschrift" in page


async def test_only_organizers_create_links_and_only_to_what_exists(users: RosterUsers) -> None:
    ada, organizer = users.ada, users.organizer
    campaign_id = await create_campaign(organizer)
    path = await create_export_link(organizer, campaign_id)
    assert csv_rows((await follow(organizer, path)).content) == []
    for id_, code in (
        ("slot_" + "0" * 24, "SLOT_NOT_FOUND"),
        ("campaign_" + "0" * 24, "CAMPAIGN_NOT_FOUND"),
        ("nonsense", "SLOT_NOT_FOUND"),
    ):
        refusal = await organizer.execute(CREATE_LINK, id=id_, format="CSV")
        assert refusal["code"] == code
    assert await ada.error_code(CREATE_LINK, id=campaign_id, format="CSV") == "FORBIDDEN"
