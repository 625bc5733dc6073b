"""Telephone numbers: who sees one, who changes it, and where it is not."""

import pytest
from bson.json_util import dumps

from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.domain.user_files.plan import ImportResult
from slotlock.domain.users import user
from slotlock.domain.users.user import Caller, Role, UserId, normalize_phone, validate_phone
from slotlock.graphql.users.user_queries import User
from slotlock.services.container import utc_now
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import download_export, load_workbook_bytes
from tests.support.clients.fixtures import Two
from tests.support.clients.user_files import CLAIM_ALL
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import insert_user, new_email

MEMBER_COUNT = 2
UPDATE_ME = """mutation($phone: String) { updateMe(phone: $phone) {
  __typename ... on User { phone } ... on InvalidInput { fields { field code } } } }"""
UPDATE_USER = """mutation($input: UpdateUserInput!) { updateUser(input: $input) {
  __typename ... on UserUpdated { user { name phone } } ... on Refusal { code }
  ... on InvalidInput { fields { field code } } } }"""
SEEN = "query($id: ID!) { node(id: $id) { ... on User { phone createdAt } } }"
LOG = """query($user: ID!) { auditLog(filter: {userId: $user}, first: 5) {
  nodes { action edits { field before after } } } }"""
NUMBER = "+49 (0)30 / 1234-56.7"


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        (NUMBER, NUMBER),
        (" 030\u00a01234\u2013567 ", "030 1234-567"),
        ("\uff11\uff13\uff18 0013 8000", "138 0013 8000"),
        ("112", "112"),
        (" ", None),
        ("", None),
    ],
)
def test_a_number_is_stored_in_usual_characters(typed: str, stored: str | None) -> None:
    assert normalize_phone(typed) == stored
    assert stored is None or validate_phone(stored) is None


@pytest.mark.parametrize("typed", ["12", "+-()/.", "4,91701E+11", "call me", "1\n2 3", "1" * 41])
def test_what_is_no_number_is_refused(typed: str) -> None:
    assert validate_phone(normalize_phone(typed) or "") is not None


@pytest.mark.parametrize(("id_", "role", "sees"), [("u1", Role.MEMBER, True),
                                                   ("u2", Role.MEMBER, False),
                                                   ("u2", Role.ORGANIZER, True)])  # fmt: skip
def test_another_member_who_sees_a_name_does_not_see_the_number(
    id_: str, role: Role, sees: bool
) -> None:
    now = utc_now()
    ada = user.User(UserId("u1"), "Ada", "a@x.org", Role.MEMBER, now, phone=NUMBER)
    shown = User.from_domain(ada, Caller(UserId(id_), role, "session", now))
    assert (shown.name, shown.phone, shown.created_at) == (
        "Ada",
        NUMBER if sees else None,
        now if sees else None,
    )


async def test_only_the_user_and_organizers_see_the_number_and_the_age_of_an_account(
    clients: Two,
) -> None:
    member, other, organizer = clients  # type: ignore[misc]
    user_id = await member.fetch_user_id()
    assert await member.execute(UPDATE_ME, phone=NUMBER) == {
        "__typename": "User",
        "phone": NUMBER,
    }
    for viewer in (member, organizer):
        seen = await viewer.execute(SEEN, id=user_id)
        assert (seen["phone"], seen["createdAt"] is None) == (NUMBER, False)
    assert await other.execute(SEEN, id=user_id) in (None, {"phone": None, "createdAt": None})
    refused = await member.execute(UPDATE_ME, phone="call me")
    assert refused["fields"] == [{"field": "phone", "code": "INVALID_PHONE"}]
    await member.execute("mutation { updateMe(locale: null) { __typename } }")
    assert (await member.execute(SEEN, id=user_id))["phone"] == NUMBER
    assert (await member.execute(UPDATE_ME, phone=""))["phone"] is None


async def test_an_organizer_changes_a_number_and_the_log_says_that_but_not_which(
    clients: Two,
) -> None:
    member, _, organizer = clients  # type: ignore[misc]
    user_id = await member.fetch_user_id()
    changed = await organizer.execute(UPDATE_USER, input={"userId": user_id, "phone": NUMBER})
    assert changed["user"]["phone"] == NUMBER
    renamed = await organizer.execute(UPDATE_USER, input={"userId": user_id, "name": "Ada"})
    assert renamed["user"] == {"name": "Ada", "phone": NUMBER}
    invalid = await organizer.execute(UPDATE_USER, input={"userId": user_id, "phone": "12"})
    assert invalid["fields"] == [{"field": "phone", "code": "INVALID_PHONE"}]
    removed = await organizer.execute(UPDATE_USER, input={"userId": user_id, "phone": None})
    assert removed["user"]["phone"] is None
    log = (await organizer.execute(LOG, user=user_id))["nodes"]
    assert [each["action"] for each in log] == ["USER_EDITED"] * 3
    edits = [edit for each in log for edit in each["edits"] if edit["field"] == "phone"]
    assert edits == [{"field": "phone", "before": None, "after": None}] * 2


async def test_lists_of_users_and_personal_data_have_the_number_and_rosters_do_not(
    clients: Two, mongo_url: str
) -> None:
    member, _, organizer = clients  # type: ignore[misc]
    await member.execute(UPDATE_ME, phone=NUMBER)
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    await member.book_slot(slot_id)
    for path in (f"slots/{slot_id}.xlsx", f"campaigns/{campaign_id}.xlsx?by=resource"):
        book = load_workbook_bytes(await download_export(organizer, path))
        values = {cell for sheet in book for row in sheet.values for cell in row}
        assert "CONFIRMED" in values
        assert not {NUMBER, "Telephone"} & values
    assert NUMBER not in (await download_export(organizer, f"slots/{slot_id}.csv")).decode()
    path = f"campaigns/{campaign_id}.xlsx?by=user"
    (sheet,) = load_workbook_bytes(await download_export(organizer, path)).worksheets
    header, *rows = sheet.values
    assert header[5:] == ("Telephone", "Course 1")
    assert [row[5] for row in rows if row[6]] == [NUMBER]
    own = await member.http.get(f"{member.url}/personal-data", headers=member.headers)
    assert own.json()["account"][0]["phone"] == NUMBER
    database = stored_database(mongo_url)
    assert not [
        name
        for name in database.list_collection_names()
        if name != "users" and NUMBER in dumps(database[name].find())
    ]


async def test_a_file_sets_numbers_and_an_empty_cell_leaves_one(auth: Auth) -> None:
    ada, ben = new_email(), new_email()

    async def send(*lines: str) -> ImportResult:
        outcome = await import_users(auth, "\n".join(lines).encode(), dry_run=False)
        assert isinstance(outcome, ImportResult)
        return outcome

    async def numbers() -> list[str | None]:
        users = auth.repositories.users
        found = [await users.find_with_password_hash(email) for email in (ada, ben)]
        return [each and each[0].phone for each in found]

    created = await send("E-Mail;Name;Handynummer", f"{ada};Ada;{NUMBER}", f"{ben};Ben;")
    assert (created.created, await numbers()) == (2, [NUMBER, None])
    again = await send("email,联系方式", f"{ada},", f"{ben},110")
    assert (again.unchanged, again.updated, await numbers()) == (1, 1, [NUMBER, "110"])
    assert (await send("email,name", f"{ada},Ada")).unchanged == 1
    assert await numbers() == [NUMBER, "110"]


async def test_a_claimed_account_loses_the_number_that_a_stranger_entered(auth: Auth) -> None:
    for line, left in (("email", None), ("email,phone", "110")):
        stranger = await insert_user(auth, self_registered=True)
        users = auth.repositories.users
        assert await users.set_preferences(stranger.id, "de", {}, NUMBER)
        cells = ",".join((stranger.login_name, *(["110"] if left else [])))
        body = f"{line}\n{cells}\n".encode()
        await import_users(auth, body, dry_run=False, choices=CLAIM_ALL)
        found = await users.find_with_password_hash(stranger.login_name)
        assert found is not None
        assert (found[0].self_registered, found[0].phone) == (False, left)
