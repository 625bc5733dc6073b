"""Files of people come in over plain HTTP, or an answer says why they do not."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import httpx
import pytest

from slotlock.domain.users.import_file import MAX_FILE_BYTES
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.user_files import (
    generated_user_csv,
    import_users,
    post_user_file,
    user_csv,
)

Pair = tuple[AppProcess, AppProcess]
CSV = "text/csv"


@pytest.fixture
async def organizer_and_members(
    two_apps: Pair, http: httpx.AsyncClient
) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser."""
    (member,), organiser = await create_booking_clients(http, 1, *two_apps)
    return member, organiser


@pytest.fixture
def school() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


def counts(created: int, updated: int, unchanged: int, *, dry_run: bool = False) -> Json:
    return {"dryRun": dry_run, "created": created, "updated": updated, "unchanged": unchanged}


async def test_a_dry_run_and_then_the_import_and_then_the_same_again(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    organiser, body = organizer_and_members[1], generated_user_csv(school, 30)
    for _ in range(2):
        foretold = await import_users(organiser, body, "?dryRun=true")
        assert foretold == counts(30, 0, 0, dry_run=True)
    assert await import_users(organiser, body, "?dryRun=false") == counts(30, 0, 0)
    assert await import_users(organiser, body) == counts(0, 0, 30)
    assert await import_users(organiser, generated_user_csv(school, 31, "6a")) == counts(1, 30, 0)


async def test_every_wrong_line_is_answered_and_nothing_is_imported(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    organiser = organizer_and_members[1]
    body = user_csv(school, {"ada": "Ada"}) + b"\nnobody,Ben,5a" * 150
    for query in ("", "?dryRun=true"):
        response = await post_user_file(organiser, body, query)
        assert response.status_code == 422
        answer = response.json()
        assert answer["code"] == "INVALID_FILE"
        assert answer["problemCount"] == 150
        assert len(answer["problems"]) == 100
        assert answer["problems"][0] == {
            "line": 3, "column": "email", "message": "This is not an e-mail address.",
        }  # fmt: skip
    assert await import_users(organiser, user_csv(school, {"ada": "Ada"})) == counts(1, 0, 0)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", "email\nren\u00e9".encode("latin-1"), b"\0" * 5_000, b'"' * 5_001,
     b"a" * 1_000_000, b"\n" * 100_000, b"email,role\na@x.org,admin", b"{}"],
)  # fmt: skip
async def test_a_body_that_is_no_file_of_people_never_breaks_anything(
    two_apps: Pair, organizer_and_members: tuple[BookingClient, BookingClient], body: bytes
) -> None:
    before = [app.log.count(" ERROR ") for app in two_apps]
    response = await post_user_file(organizer_and_members[1], body)
    assert (response.status_code, response.json()["code"]) == (422, "INVALID_FILE")
    assert [app.log.count(" ERROR ") for app in two_apps] == before


async def test_only_organisers_import_and_invite(
    organizer_and_members: tuple[BookingClient, BookingClient], http: httpx.AsyncClient
) -> None:
    member, _ = organizer_and_members
    nobody, expired = (
        GraphQLTestClient(http, member.url),
        GraphQLTestClient(http, member.url, "no.such.token"),
    )
    for path in ("/users/import", "/users/invitations"):
        for who, status, code in (
            (member, 403, "FORBIDDEN"),
            (nobody, 401, "UNAUTHENTICATED"),
            (expired, 401, "UNAUTHENTICATED"),
        ):
            headers = {**who.headers, "Content-Type": CSV}
            response = await http.post(who.url + path, content=b"email\n", headers=headers)
            assert (response.status_code, response.json()["code"]) == (status, code)
            assert ("www-authenticate" in response.headers) is (status == 401)
        strange = {b"Authorization": b"Bearer \xe9", b"Content-Type": b"text/csv"}
        response = await http.post(member.url + path, content=b"", headers=strange)
        assert response.status_code == 401


@pytest.mark.parametrize(
    "query",
    ["?dry_run=true", "?dryrun=true", "?dryRun=1", "?dryRun", "?dryRun=true&dryRun=false",
     "?dryRun=TRUE", "?dryRun=%FF", "?group=5a"],
)  # fmt: skip
async def test_what_may_have_been_meant_as_a_dry_run_is_not_imported(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str, query: str
) -> None:
    organiser, body = organizer_and_members[1], generated_user_csv(school, 1)
    response = await post_user_file(organiser, body, query)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")
    assert await import_users(organiser, body, "?dryRun=true") == counts(1, 0, 0, dry_run=True)


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "text/plain", "text/csv; charset=latin-1", "", "text/csv;charset=utf-16"],
)  # fmt: skip
async def test_what_is_not_csv_in_utf_8_is_refused_by_its_media_type(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str, media_type: str
) -> None:
    response = await post_user_file(
        organizer_and_members[1], generated_user_csv(school, 1), "?dryRun=true", media_type
    )
    assert (response.status_code, response.headers["accept"]) == (415, CSV)


@pytest.mark.parametrize("media_type", ["text/csv; charset=UTF-8", 'TEXT/CSV;charset="utf-8"'])
async def test_a_media_type_may_say_that_it_is_utf_8(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str, media_type: str
) -> None:
    response = await post_user_file(
        organizer_and_members[1], generated_user_csv(school, 1), "?dryRun=true", media_type
    )
    assert response.status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_file_that_is_too_large_is_refused(
    organizer_and_members: tuple[BookingClient, BookingClient], chunked: bool
) -> None:
    organiser = organizer_and_members[1]
    body = (b"email\n" + (b" " * 999 + b"\n") * 5_000)[: MAX_FILE_BYTES + 1]

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    headers = {**organiser.headers, "Content-Type": CSV}
    url = organiser.url + "/users/import"
    content = chunks() if chunked else body
    response = await organiser.http.post(url, content=content, headers=headers)
    assert (response.status_code, response.json()["code"]) == (413, "LIMIT_EXCEEDED")
    assert await import_users(organiser, body[:-1]) == counts(0, 0, 0)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_other_methods_are_told_which_there_is(
    organizer_and_members: tuple[BookingClient, BookingClient], method: str
) -> None:
    organiser = organizer_and_members[1]
    for path in ("/users/import", "/users/invitations"):
        url = organiser.url + path
        response = await organiser.http.request(method, url, headers=organiser.headers)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert response.json()["code"] == "BAD_USER_INPUT"


async def test_two_files_at_once_at_two_processes_are_both_answered_and_one_comes_last(
    two_apps: Pair,
    organizer_and_members: tuple[BookingClient, BookingClient],
    http: httpx.AsyncClient,
    school: str,
) -> None:
    organiser = organizer_and_members[1]
    await import_users(organiser, generated_user_csv(school, 300, "old"))
    answers = await asyncio.gather(
        *(
            import_users(
                GraphQLTestClient(http, app.url, organiser.token),
                generated_user_csv(school, 300, group),
            )
            for app, group in zip(two_apps, "ab", strict=True)
        )
    )
    assert [answer["updated"] for answer in answers] == [300, 300]
    for group in "ab":
        after = await import_users(
            organiser, generated_user_csv(school, 300, group), "?dryRun=true"
        )
        assert after["unchanged"] in (0, 300)
