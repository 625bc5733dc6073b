"""Organizers say who acts for whom, and accounts stay members, parents or children."""

import asyncio
import secrets
from contextvars import Context
from itertools import count
from typing import Any

import httpx
import pytest

from slotlock.auth.admin import account_admin
from slotlock.auth.container import Auth
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.users import account_admin_writer
from slotlock.services.container import utc_now
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.scenarios.families import UPDATE_USER, create_child, set_guardians
from tests.support.scenarios.led_course import change_document
from tests.support.stores.users import insert_user

FAMILY = """{ me { id name dependents { id name groups email guardians { id name email } } } }"""
SEEN = """query($id: ID!) { nodes(ids: [$id]) { ... on User {
  name groups guardians { id } dependents { id }
} } }"""
INVITE = """mutation($user: ID!) { inviteUser(userId: $user) {
  __typename ... on InvalidInput { fields { field code } }
} }"""
RESET = """mutation($user: ID!) { createPasswordReset(userId: $user) {
  __typename ... on InvalidInput { fields { field code } }
} }"""
SET_ROLE = """mutation($user: ID!, $role: Role!) { setUserRole(userId: $user, role: $role) {
  __typename ... on User { role } ... on InvalidInput { fields { field code } }
} }"""
USERS = "query($filter: UserFilter!) { users(filter: $filter) { nodes { id } } }"


async def members(
    app: AppProcess, http: httpx.AsyncClient, count: int
) -> tuple[list[BookingClient], list[str]]:
    """Return members and their ids."""
    clients, _ = create_booking_clients(http, count, app)
    return clients, [await client.fetch_user_id() for client in clients]


async def found(organizer: GraphQLTestClient, **user_filter: object) -> list[str]:
    """Return the ids of the users that a filter finds."""
    nodes = (await organizer.execute(USERS, filter=user_filter))["nodes"]
    return [each["id"] for each in nodes]


def problem(result: Json) -> tuple[str, str]:
    """Return the only problem of an invalid input."""
    (only,) = result["fields"]
    return only["field"], only["code"]


async def test_a_child_without_a_login_name_is_seen_by_its_guardians_and_no_other_member(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient
) -> None:
    (mother, father, other), (mother_id, father_id, other_id) = await members(app, http, 3)
    created = await create_child(organizer, mother_id, father_id, groups=["2b"])
    child = created["user"]
    assert created["invitationToken"] is child["email"] is child["username"] is None
    assert {each["id"] for each in child["guardians"]} == {mother_id, father_id}
    (seen,) = (await mother.execute(FAMILY))["dependents"]
    assert (seen["name"], seen["groups"]) == (child["name"], ["2b"])
    emails = {each["id"]: each["email"] is not None for each in seen["guardians"]}
    assert emails == {mother_id: True, father_id: False}
    assert (await other.execute(FAMILY))["dependents"] == []
    assert (await organizer.execute(SEEN, id=mother_id))[0]["dependents"] == [{"id": child["id"]}]
    # The parents share the child, and neither sees what else the other is.
    assert await father.execute(SEEN, id=mother_id) == [None]
    changed = await set_guardians(organizer, child["id"], [other_id])
    assert changed["user"]["guardians"] == [{"id": other_id}]
    assert (await mother.execute(FAMILY))["dependents"] == []
    renamed = await organizer.execute(UPDATE_USER, input={"userId": child["id"], "name": "Mia"})
    assert renamed["user"]["guardians"] == [{"id": other_id}]
    assert (await set_guardians(organizer, child["id"], []))["user"]["guardians"] == []
    assert (await other.execute(FAMILY))["dependents"] == []


async def test_who_cannot_become_a_guardian_is_refused_and_nothing_changes(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient
) -> None:
    _, (mother, father, ada, ben, stranger, banned) = await members(app, http, 6)
    change_document(app, "users", stranger, selfRegistered=True)
    change_document(app, "users", banned, banned=True, bannedAt=utc_now())
    assert (await set_guardians(organizer, ada, [mother]))["__typename"] == "UserUpdated"
    refusals = (
        (ben, [ada], "GUARDIAN_IS_DEPENDENT"),
        (ben, [ben], "GUARDIAN_IS_DEPENDENT"),
        (mother, [father], "HAS_DEPENDENTS"),
        (ada, [mother, father, ben], "TOO_MANY_GUARDIANS"),
        (ada, [mother, banned], "USER_IS_BANNED"),
        (await organizer.fetch_user_id(), [father], "DEPENDENT_NOT_MEMBER"),
    )
    for user_id, guardian_ids, code in refusals:
        refused = await set_guardians(organizer, user_id, guardian_ids)
        assert problem(refused) == ("guardianIds", code)
    for guardian_id, code in ((stranger, "SELF_REGISTERED"), ("user_" + "0" * 24, "USER_NOT_FOUND"),
                              ("user_7", "USER_NOT_FOUND")):  # fmt: skip
        assert (await set_guardians(organizer, ada, [mother, guardian_id]))["code"] == code
        assert (await create_child(organizer, guardian_id))["code"] == code
    nobody = await create_child(organizer)
    assert problem(nobody) == ("email", "LOGIN_NAME_MISSING")
    change_document(app, "users", mother, banned=True, bannedAt=utc_now())
    # A guardian twice is one, and who was banned since stays one.
    unchanged = await set_guardians(organizer, ada, [mother, mother])
    assert unchanged["user"]["guardians"] == [{"id": mother}]
    (seen,) = await organizer.execute(SEEN, id=mother)
    assert seen["dependents"] == [{"id": ada}]


async def test_a_child_is_created_once_however_often_the_request_is_sent(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient
) -> None:
    _, (mother, father, other) = await members(app, http, 3)
    name = f"Mia Münz {secrets.token_hex(4)}"
    both = await asyncio.gather(
        *(create_child(organizer, mother, father, name=name) for _ in range(2))
    )
    assert sorted(each["__typename"] for each in both) == ["InvalidInput", "UserCreated"]
    again = name.upper().replace("Ü", "U")
    for fields in ({}, {"username": secrets.token_hex(8)}):
        refused = await create_child(organizer, father, other, name=again, **fields)
        (only,) = refused["fields"]
        assert (only["field"], only["code"]) == ("name", "DEPENDENT_EXISTS")
        assert only["values"] == [{"name": "name", "value": name}]
    # A namesake of another family is another child.
    namesake = await create_child(organizer, other, name=name)
    assert namesake["__typename"] == "UserCreated"
    # So is a second one of the family, if both sign in.
    first = {"userId": namesake["user"]["id"], "username": secrets.token_hex(8)}
    await organizer.execute(UPDATE_USER, input=first)
    assert problem(await create_child(organizer, other, name=name)) == ("name", "DEPENDENT_EXISTS")
    second = await create_child(organizer, other, name=name, username=secrets.token_hex(8))
    assert second["__typename"] == "UserCreated"


async def test_no_change_gives_a_guardian_two_children_of_one_name(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient
) -> None:
    _, (mother, father) = await members(app, http, 2)
    name = f"Mia Münz {secrets.token_hex(4)}"
    mia = (await create_child(organizer, mother, name=name))["user"]["id"]
    namesake = (await create_child(organizer, father, name=name))["user"]["id"]
    ida = (await create_child(organizer, mother))["user"]["id"]

    async def change(user_id: str, **changes: object) -> Json:
        changed: Json = await organizer.execute(UPDATE_USER, input={"userId": user_id, **changes})
        return changed

    for user_id, changes in (
        (namesake, {"guardianIds": [father, mother]}),
        (mia, {"guardianIds": [father]}),
        (ida, {"name": name.upper()}),
    ):
        assert problem(await change(user_id, **changes)) == ("name", "DEPENDENT_EXISTS")
    # What makes no namesake is changed: another spelling, fewer guardians, and both login names.
    again = {"name": name.replace("ü", "u"), "guardianIds": [mother]}
    assert (await change(mia, **again))["__typename"] == "UserUpdated"
    for user_id, guardians in ((mia, [mother]), (namesake, [father, mother])):
        named = {"username": secrets.token_hex(8), "guardianIds": guardians}
        assert (await change(user_id, **named))["__typename"] == "UserUpdated"


async def test_a_made_login_name_is_neither_found_nor_invited_until_there_is_a_real_one(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient, admin: BookingClient
) -> None:
    _, (mother,) = await members(app, http, 1)
    child = (await create_child(organizer, mother))["user"]
    assert child["hasPassword"] is False
    refused = {"__typename": "InvalidInput", "fields": [{"field": "userId",
               "code": "LOGIN_NAME_MISSING"}]}  # fmt: skip
    assert await organizer.execute(INVITE, user=child["id"]) == refused
    assert await admin.execute(RESET, user=child["id"]) == refused
    assert child["id"] not in await found(organizer, text="child")
    name = {"text": child["name"]}
    assert await found(organizer, **name) == [child["id"]]
    assert await found(organizer, **name, withoutPassword=True) == []
    named = await organizer.execute(
        UPDATE_USER, input={"userId": child["id"], "username": child["name"].replace(" ", ".")}
    )
    assert named["user"]["guardians"] == [{"id": mother}]
    assert await found(organizer, **name, withoutPassword=True) == [child["id"]]
    assert (await organizer.execute(INVITE, user=child["id"]))["__typename"] == "UserInvited"


async def test_a_user_with_guardians_stays_a_member(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient, admin: BookingClient
) -> None:
    _, (mother, child) = await members(app, http, 2)
    await set_guardians(organizer, child, [mother])
    refused = await admin.execute(SET_ROLE, user=child, role="ORGANIZER")
    assert problem(refused) == ("role", "DEPENDENT_NOT_MEMBER")
    assert (await admin.execute(SET_ROLE, user=child, role="MEMBER"))["role"] == "MEMBER"
    assert (await admin.execute(SET_ROLE, user=mother, role="ORGANIZER"))["role"] == "ORGANIZER"
    assert (await set_guardians(organizer, child, []))["__typename"] == "UserUpdated"
    assert (await admin.execute(SET_ROLE, user=child, role="ORGANIZER"))["role"] == "ORGANIZER"


async def _update(auth: Auth, user: UserId, *guardians: UserId) -> Any:
    organizer = Caller(UserId("f" * 24), Role.ADMIN, "session", utc_now())
    return await account_admin.update_user(auth, organizer, user, None, None, guardians=guardians)


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("race", ["a guardian gets a guardian", "a guardian gets a 21st dependent"])
async def test_two_changes_at_once_that_no_order_permits_are_not_both_written(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, race: str, is_guarded: bool
) -> None:
    mother, ada, ben, other = [(await insert_user(auth)).id for _ in range(4)]
    if race == "a guardian gets a guardian":
        first, second = (ada, mother), (mother, other)
    else:
        first, second = (ada, mother), (ben, mother)
        for _ in range(19):
            assert await _update(auth, (await insert_user(auth)).id, mother)
    outcomes, settled = list[asyncio.Task[Any]](), asyncio.Event()
    attempts = count()
    refuse, mark = account_admin_writer.refuse_guardians, account_admin_writer.mark_checked

    async def refuse_and_let_the_other_write(*arguments: Any) -> Any:
        _, user_id, *_ = arguments
        if user_id == second[0] and next(attempts):  # it conflicted with the first
            settled.set()
        refusal = await refuse(*arguments)
        if user_id == first[0] and not outcomes:
            task = asyncio.create_task(_update(auth, *second), context=Context())
            task.add_done_callback(lambda _: settled.set())
            outcomes.append(task)
            await settled.wait()
        return refusal

    async def mark_nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(account_admin_writer, "refuse_guardians", refuse_and_let_the_other_write)
    monkeypatch.setattr(account_admin_writer, "mark_checked", mark if is_guarded else mark_nothing)
    results = [await _update(auth, *first), await outcomes[0]]
    refused = [each for each in results if isinstance(each, InvalidInput)]
    # The control: without the mark, both are written.
    assert len(refused) == int(is_guarded), results


async def test_a_role_that_is_set_while_a_user_gets_guardians_does_not_stay(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    mother, ada = [(await insert_user(auth)).id for _ in range(2)]
    write = account_admin_writer.AccountAdminWriter.set_role

    async def set_role_later(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        await _update(auth, ada, mother)
        return await write(*arguments, **options)

    monkeypatch.setattr(account_admin_writer.AccountAdminWriter, "set_role", set_role_later)
    refused = await account_admin.set_role(auth, None, ada, Role.ORGANIZER)
    assert isinstance(refused, InvalidInput)
    (user,) = (await auth.repositories.users.find_many([ada])).values()
    assert (user.role, user.guardians) == (Role.MEMBER, (mother,))
    assert isinstance(user, User)
