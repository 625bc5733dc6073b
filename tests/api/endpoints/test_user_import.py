"""Imports of users over HTTP, and the invitations of new users."""

import secrets
import zipfile
from collections.abc import AsyncIterator
from datetime import datetime
from io import BytesIO

import httpx
import pytest

from slotlock.api.endpoints.user_file_endpoints import OTHER_CSV_MEDIA_TYPES
from slotlock.domain.shared.tables.table import MAX_FILE_BYTES
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.user_files import (
    create_invitations,
    generated_user_csv,
    import_users,
    post_user_file,
    user_csv,
)

CSV = "text/csv"
ORGANIZER_PATHS = (
    *("/users/import", "/users/invitations", "/users/letters", "/check-in/frames"),
    "/slots/import",
)
PASSWORD = "correct horse battery"
SET_PASSWORD = """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) {
    __typename ... on Session { accessToken user { email name groups hasPassword } }
    ... on Refusal { code message } } }"""
LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  __typename ... on Refusal { code } } }"""


# How a workbook of Excel 97 begins (MS-CFB, 2.2).
OLD_WORKBOOK = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + bytes.fromhex("3e000300feff0900")


def zipped_workbook() -> bytes:
    """Return a file like those of Excel today."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/worksheets/sheet1.xml", "<worksheet><c>ada@school.example</c></worksheet>"
        )
    return content.getvalue()


@pytest.fixture
def email_domain() -> str:
    """Return a domain of email addresses that no other test uses; also the name of a group."""
    return f"{secrets.token_hex(8)}.test"


def counts(created: int, updated: int, unchanged: int, *, dry_run: bool = False) -> Json:
    return {
        "dryRun": dry_run,
        "created": created,
        "updated": updated,
        "unchanged": unchanged,
        "claimed": 0,
        "vouchedFor": 0,
        "linksAdded": 0,
        "linksRemoved": 0,
        "leadersChanged": 0,
        "withoutLeader": [],
        "selfRegistered": [],
        "ignoredColumns": [],
        "leavers": [],
        "similarGroups": [],
    }


async def test_a_dry_run_predicts_the_import_and_a_repetition_changes_nothing(
    organizer: BookingClient, email_domain: str
) -> None:
    body = generated_user_csv(email_domain, 30)
    for _ in range(2):
        prediction = await import_users(organizer, body, "?dryRun=true")
        assert prediction.pop("preview")["groups"] == [{"name": f"5a {email_domain}", "count": 30}]
        assert prediction == counts(30, 0, 0, dry_run=True)
    assert await import_users(organizer, body, "?dryRun=false") == counts(30, 0, 0)
    assert await import_users(organizer, body) == counts(0, 0, 30)
    group = f"6a {email_domain}"
    larger = generated_user_csv(email_domain, 31, group)
    assert await import_users(organizer, larger) == counts(1, 30, 0)
    left = await import_users(organizer, generated_user_csv(email_domain, 30, group))
    (leaver,) = left.pop("leavers")
    assert left | {"leavers": []} == counts(0, 0, 30)
    assert leaver.pop("userId").startswith("user_")
    name = {"email": f"person30@{email_domain}", "name": "Somebody"}
    assert leaver == {**name, "groups": [group]}
    spellings = [f"06C {email_domain}", f"6C {email_domain}", f"6c {email_domain}"]
    body = user_csv(email_domain, {"ada": "Ada"}, spellings[0])
    assert (await import_users(organizer, body))["similarGroups"] == []
    body = user_csv(email_domain, {"ben": "Ben"}, ";".join(spellings[1:]))
    for _ in range(2):
        assert (await import_users(organizer, body))["similarGroups"] == [spellings]


async def test_a_dry_run_shows_how_the_file_was_read_and_which_lines_are_odd(
    organizer: BookingClient, email_domain: str
) -> None:
    group = email_domain[:20]
    lines = ["Nachname;Vorname;E-Mail;Klasse", *(
        f"Müller;Änne;aenne{number}@{email_domain};{number + 8}a {group}" for number in range(6)
    ), f"Groß;;gross@{email_domain};9a {group}", "Klein;Lena;lena@schule;"]  # fmt: skip
    report = await import_users(organizer, "\n".join(lines).encode("cp1252"), "?dryRun=true")
    preview = report["preview"]
    assert len(preview["first"]) == 5
    assert preview["first"][0] == {
        "email": f"aenne0@{email_domain}", "name": "Änne Müller", "groups": [f"8a {group}"],
        "guardians": [],
    }  # fmt: skip
    named = [(each["name"].split()[0], each["count"]) for each in preview["groups"]]
    assert named == [("8a", 1), ("9a", 2), ("10a", 1), ("11a", 1), ("12a", 1), ("13a", 1)]
    assert preview["warnings"] == [
        {"code": "NO_GROUP", "lines": [9], "count": 1},
        {"code": "SHORT_NAME", "lines": [8], "count": 1},
        {"code": "ODD_ADDRESS", "lines": [9], "count": 1},
    ]


async def test_addresses_of_parents_are_those_of_guardians_if_the_request_says_so(
    organizer: BookingClient, email_domain: str
) -> None:
    parent = f"pam@{email_domain}"
    body = f"name,email\nMia,{parent}\nBen,{parent}\n".encode()
    refused = (await post_user_file(organizer, body)).json()
    assert [(each["code"], each["column"]) for each in refused["problems"]] == [
        ("SAME_USER", "email")
    ]
    query = "?addressesOf=guardians"
    report = await import_users(organizer, body, f"{query}&dryRun=true")
    assert (report["created"], report["linksAdded"], report["linksRemoved"]) == (3, 2, 0)
    assert report["preview"]["first"][0] == {
        "email": None, "name": "Mia", "groups": [], "guardians": [parent],
    }  # fmt: skip
    assert (await import_users(organizer, body, query))["created"] == 3
    assert await import_users(organizer, body, query) == counts(0, 0, 2)
    (invited,) = [each for each in await create_invitations(organizer) if email_domain in str(each)]
    assert (invited["email"], invited["username"]) == (parent, "")


async def test_a_file_with_invalid_lines_gets_each_problem_once_and_imports_nothing(
    organizer: BookingClient, email_domain: str
) -> None:
    body = user_csv(email_domain, {"ada": "Ada"}) + b"\nnobody,Ben,5a" * 150
    for query in ("", "?dryRun=true"):
        response = await post_user_file(organizer, body, query)
        assert response.status_code == 422
        result = response.json()
        assert result["code"] == "INVALID_FILE"
        assert result["problemCount"] == 150
        assert result["problems"] == [{
            "line": 3, "column": "email", "message": "This is not an email address.",
            "lines": list(range(3, 13)), "count": 150,
            "code": "INVALID_EMAIL", "values": {}, "header": "email",
        }]  # fmt: skip
    valid = user_csv(email_domain, {"ada": "Ada"})
    assert await import_users(organizer, valid) == counts(1, 0, 0)


async def test_problems_that_only_the_accounts_show_name_the_header_of_the_file(
    organizer: BookingClient, email_domain: str
) -> None:
    header = "E-Mail-Adresse,leitet,E-Mail Mutter,E-Mail Vater,Subject"
    text = f"{header}\nada@{email_domain},Nobody,nobody,,\n"
    response = await post_user_file(organizer, text.encode(), "?dryRun=true")
    assert {each["column"]: each["header"] for each in response.json()["problems"]} == {
        "guardian": "E-Mail Mutter, E-Mail Vater",
        "leads": "leitet",
    }
    text = f"{header}\nada@{email_domain},,,,none\n"
    response = await post_user_file(organizer, text.encode(), "?dryRun=true")
    assert [each["header"] for each in response.json()["problems"]] == ["Subject"]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", "email\nren\u00e9".encode("latin-1"), b"\0" * 5_000, b'"' * 5_001,
     b"a" * 1_000_000, b"\n" * 100_000, b"email,role\na@x.org,admin", b"{}"],
)  # fmt: skip
async def test_a_body_that_is_not_a_user_file_gets_422_and_logs_no_error(
    two_apps: Pair, organizer: BookingClient, body: bytes
) -> None:
    errors_before = [app.log.count(" ERROR ") for app in two_apps]
    response = await post_user_file(organizer, body)
    assert (response.status_code, response.json()["code"]) == (422, "INVALID_FILE")
    assert [app.log.count(" ERROR ") for app in two_apps] == errors_before


async def test_only_organizers_import_and_invite(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (member,), _ = create_booking_clients(http, 1, *two_apps)
    anonymous = GraphQLTestClient(http, member.url)
    with_bad_token = GraphQLTestClient(http, member.url, "no.such.token")
    for path in ORGANIZER_PATHS:
        for client, status, code in (
            (member, 403, "FORBIDDEN"),
            (anonymous, 401, "UNAUTHENTICATED"),
            (with_bad_token, 401, "UNAUTHENTICATED"),
        ):
            headers = {**client.headers, "Content-Type": CSV}
            response = await http.post(client.url + path, content=b"email\n", headers=headers)
            assert (response.status_code, response.json()["code"]) == (status, code)
            assert ("www-authenticate" in response.headers) is (status == 401)
        not_ascii = {b"Authorization": b"Bearer \xe9", b"Content-Type": b"text/csv"}
        response = await http.post(member.url + path, content=b"", headers=not_ascii)
        assert response.status_code == 401


@pytest.mark.parametrize(
    "query",
    ["?dry_run=true", "?dryrun=true", "?dryRun=1", "?dryRun", "?dryRun=true&dryRun=false",
     "?dryRun=TRUE", "?dryRun=%FF", "?group=5a", "?claim", "?claim=yes",
     "?claim=2&vouch=2", "?claim=all&vouch=all", "?vouch=2,", "?vouch=-2", "?vouch=%C2%B2"],
)  # fmt: skip
async def test_a_misspelled_dry_run_imports_nothing(
    organizer: BookingClient, email_domain: str, query: str
) -> None:
    body = generated_user_csv(email_domain, 1)
    response = await post_user_file(organizer, body, query)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")
    prediction = await import_users(organizer, body, "?dryRun=true")
    assert {**prediction, "preview": None} == {**counts(1, 0, 0, dry_run=True), "preview": None}


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "multipart/form-data; boundary=x",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "text/csv; charset=latin-1",
        "text/csv;charset=utf-16",
        "text/plain; charset=latin-1",
    ],
)
async def test_a_file_of_another_media_type_or_charset_gets_415(
    organizer: BookingClient, email_domain: str, media_type: str
) -> None:
    body = generated_user_csv(email_domain, 1)
    response = await post_user_file(organizer, body, "?dryRun=true", media_type)
    assert (response.status_code, response.headers["accept"]) == (415, CSV)


@pytest.mark.parametrize(
    "media_type",
    [
        "text/csv; charset=utf8",
        'TEXT/CSV;charset="UTF-8"',
        *OTHER_CSV_MEDIA_TYPES,
        "text/plain;charset=utf8",
    ],
)
async def test_what_browsers_call_a_csv_file_is_accepted_by_its_content(
    organizer: BookingClient, email_domain: str, media_type: str
) -> None:
    body = generated_user_csv(email_domain, 1)
    response = await post_user_file(organizer, body, "?dryRun=true", media_type)
    assert response.status_code == 200
    for other_file in (OLD_WORKBOOK, zipped_workbook()):
        response = await post_user_file(organizer, other_file, "?dryRun=true", media_type)
        assert response.status_code == 422
        (problem,) = response.json()["problems"]
        assert problem["code"] == "UNKNOWN_ENCODING"
        assert "Please save it as 'CSV UTF-8'" in problem["message"]


async def test_an_organizer_vouches_for_an_account_that_registered_itself_and_claims_none(
    organizer: BookingClient, email_domain: str
) -> None:
    account = {"name": "Eve", "email": f"ada@{email_domain}", "password": "correct horse battery"}
    document = """mutation($input: RegisterInput!) { register(input: $input) { __typename } }"""
    assert (await organizer.execute(document, input=account))["__typename"] == "Session"
    body = user_csv(email_domain, {"ada": "Ada"})
    (registered,) = (await import_users(organizer, body))["selfRegistered"]
    assert registered.pop("registeredAt").endswith("Z")
    assert registered.pop("userId").startswith("user_")
    assert registered == {"line": 2, "email": account["email"], "name": "Eve"}
    refused = await post_user_file(organizer, body, "?claim=all")
    assert [each["code"] for each in refused.json()["problems"]] == ["CLAIM_BY_ADMIN"]
    vouched = await import_users(organizer, body, "?vouch=2")
    assert vouched == {**counts(0, 0, 0), "vouchedFor": 1}
    assert await import_users(organizer, body) == counts(0, 0, 1)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_file_that_is_too_large_gets_413(organizer: BookingClient, chunked: bool) -> None:
    body = (b"email\n" + (b" " * 999 + b"\n") * 5_000)[: MAX_FILE_BYTES + 1]

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    url, headers = organizer.url + "/users/import", {**organizer.headers, "Content-Type": CSV}
    content = chunks() if chunked else body
    response = await organizer.http.post(url, content=content, headers=headers)
    assert (response.status_code, response.json()["code"]) == (413, "LIMIT_EXCEEDED")
    assert await import_users(organizer, body[:-1]) == counts(0, 0, 0)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_other_methods_get_405(organizer: BookingClient, method: str) -> None:
    for path in ORGANIZER_PATHS:
        url = organizer.url + path
        response = await organizer.http.request(method, url, headers=organizer.headers)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert response.json()["code"] == "BAD_USER_INPUT"


async def test_an_imported_user_is_invited_sets_a_password_and_signs_in(
    two_apps: Pair, organizer: BookingClient, http: httpx.AsyncClient, email_domain: str
) -> None:
    file = user_csv(email_domain, {"ada": "Ada", "ben": "Ben"}, email_domain)
    await import_users(organizer, file)
    rows = await create_invitations(organizer, group=email_domain)
    assert [(row["email"], row["name"], row["groups"]) for row in rows] == [
        (f"ada@{email_domain}", "Ada", email_domain),
        (f"ben@{email_domain}", "Ben", email_domain),
    ]
    assert all(datetime.fromisoformat(row["expires_at"]) for row in rows)
    assert [row["link"] for row in rows] == ["", ""]  # this server does not know its address
    client = GraphQLTestClient(http, two_apps[1].url)
    typed = f" {rows[0]['token'].lower().replace('-', ' ')} "  # the code of a letter
    session = await client.execute(SET_PASSWORD, token=typed, password=PASSWORD)
    assert session["user"] == {
        "email": f"ada@{email_domain}",
        "name": "Ada",
        "groups": [email_domain],
        "hasPassword": True,
    }
    credentials = {"email": f"ada@{email_domain}", "password": PASSWORD}
    assert (await client.execute(LOGIN, input=credentials))["__typename"] == "Session"
    remaining = await create_invitations(organizer, group=email_domain)
    assert [row["name"] for row in remaining] == ["Ben"]
    # Another import of the same file does not change the password.
    assert (await import_users(organizer, file))["unchanged"] == 2
    assert (await client.execute(LOGIN, input=credentials))["__typename"] == "Session"


async def test_an_invalid_password_or_token_is_a_refusal_and_does_not_use_up_the_invitation(
    two_apps: Pair, organizer: BookingClient, http: httpx.AsyncClient, email_domain: str
) -> None:
    await import_users(organizer, generated_user_csv(email_domain, 1, email_domain))
    (row,) = await create_invitations(organizer, group=email_domain)
    client = GraphQLTestClient(http, two_apps[0].url)
    outcome = await client.execute(SET_PASSWORD, token=row["token"], password="short")
    assert outcome["code"] == "INVALID_INPUT"
    for token in ("", "\0", row["token"][:-1], "x" * 10_000):
        outcome = await client.execute(SET_PASSWORD, token=token, password=PASSWORD)
        assert outcome["code"] == "INVALID_INVITATION"
    outcome = await client.execute(SET_PASSWORD, token=row["token"], password=PASSWORD)
    assert outcome["__typename"] == "Session"


async def test_formulas_in_a_list_of_invitations_are_escaped(
    organizer: BookingClient, email_domain: str
) -> None:
    names = ["=1+1", "+1", "-1", "@sum", '"=""x"""', "Ada"]
    users = {f"user{number}": name for number, name in enumerate(names)}
    await import_users(organizer, user_csv(email_domain, {**users, "+ada": "A"}, email_domain))
    rows = await create_invitations(organizer, group=email_domain)
    escaped = ["A", "'=1+1", "'+1", "'-1", "'@sum", '\'="x"', "Ada"]
    assert [row["name"] for row in rows] == escaped
    assert rows[0]["email"] == f"'+ada@{email_domain}"


async def test_a_group_without_new_users_gets_no_invitations(
    organizer: BookingClient, email_domain: str
) -> None:
    assert await create_invitations(organizer, group=email_domain) == []


async def test_invitations_are_for_each_of_the_groups(
    organizer: BookingClient, email_domain: str
) -> None:
    groups = [f"5{letter} {email_domain}" for letter in "abc"]
    for number, group in enumerate(groups):
        body = user_csv(email_domain, {f"user{number}": f"User {number}"}, group)
        await import_users(organizer, body)
    rows = await create_invitations(organizer, group=f"{groups[0]}, {groups[2]}")
    assert [row["name"] for row in rows] == ["User 0", "User 2"]


@pytest.mark.parametrize(
    "query", ["?group=", "?group=a,b*", "?group=%00", "?groups=5a", "?group=a&group=b"]
)
async def test_an_invalid_group_or_parameter_gets_400(organizer: BookingClient, query: str) -> None:
    url = f"{organizer.url}/users/invitations{query}"
    response = await organizer.http.post(url, headers=organizer.headers)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")
