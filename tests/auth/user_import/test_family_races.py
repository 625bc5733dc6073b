"""Imports of children and leaders concurrent with what organizers do to users: each rule holds."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.plan import ImportOutcome, ImportResult
from slotlock.domain.users.dependents import MAX_DEPENDENTS
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.imports import UserImportWriter
from slotlock.services.container import utc_now
from tests.support.clients.user_files import users_by_local_part

ADMIN = Caller(UserId("f" * 24), Role.ADMIN, "session", utc_now())
Users = dict[str, User]
Act = Callable[[], Awaitable[object]]


async def import_text(auth: Auth, domain: str, text: str) -> ImportOutcome | InvalidFile:
    return await import_users(auth, text.replace("@", f"@{domain}").encode(), dry_run=False)


async def name_guardian(auth: Auth, child: User, guardian: User) -> None:
    changed = await account_admin.update_user(
        auth, ADMIN, child.id, None, None, guardians=(guardian.id,)
    )
    assert isinstance(changed, account_admin.UserUpdated), changed


async def ban(auth: Auth, user: User) -> None:
    assert isinstance(await groups_and_bans.ban(auth, ADMIN, user.id, None), User)


def act_during_import(monkeypatch: pytest.MonkeyPatch, act: Act, *, is_within: bool) -> None:
    """Act once after an import has read its users: before its transaction, or within it."""
    bump, acts = UserImportWriter._bump_version, [act]

    async def bump_and_act(self: UserImportWriter, *args: object) -> None:
        if is_within:
            await bump(self, *args)  # type: ignore[arg-type]
        if acts:
            await acts.pop()()
        if not is_within:
            await bump(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(UserImportWriter, "_bump_version", bump_and_act)


async def check_nothing(*_: object) -> None:
    """Find no conflict."""


async def four_users(auth: Auth, domain: str) -> Users:
    await import_text(auth, domain, "email\npam@\ntom@\nben@\neve@\n")
    return await users_by_local_part(auth, domain)


RACES: dict[str, tuple[Callable[[Auth, Users], Awaitable[object]], str]] = {
    "a 20th child": (
        lambda auth, users: name_guardian(auth, users["eve"], users["pam"]),
        "TOO_MANY_DEPENDENTS",
    ),
    "a guardian": (
        lambda auth, users: name_guardian(auth, users["pam"], users["tom"]),
        "GUARDIAN_IS_DEPENDENT",
    ),
    "a ban": (lambda auth, users: ban(auth, users["pam"]), "BANNED_GUARDIAN"),
    "a child of the child": (
        lambda auth, users: name_guardian(auth, users["eve"], users["ben"]),
        "HAS_DEPENDENTS",
    ),
}


async def import_during(
    auth: Auth,
    other_process: Auth,
    domain: str,
    monkeypatch: pytest.MonkeyPatch,
    race: str,
    *,
    is_within: bool = False,
) -> ImportOutcome | InvalidFile:
    """Import the guardian of a child while an organizer does what does not go with it."""
    users, (act, _) = await four_users(auth, domain), RACES[race]
    # The import has read this child, as it names the guardian.
    await name_guardian(auth, users["eve"], users["tom"])
    if race == "a 20th child":
        lines = [f"Child {number},pam@" for number in range(MAX_DEPENDENTS - 1)]
        await import_text(auth, domain, "\n".join(("name,guardian", *lines)))
    act_during_import(monkeypatch, partial(act, other_process, users), is_within=is_within)
    return await import_text(auth, domain, "email,guardian\nben@,pam@\ntom@,\n")


@pytest.mark.parametrize("is_within", [False, True], ids=["before", "within"])
@pytest.mark.parametrize("race", RACES)
async def test_what_a_guardian_gets_during_an_import_is_a_problem_of_the_line(
    auth: Auth,
    other_process: Auth,
    domain: str,
    monkeypatch: pytest.MonkeyPatch,
    race: str,
    is_within: bool,
) -> None:
    outcome = await import_during(
        auth, other_process, domain, monkeypatch, race, is_within=is_within
    )
    assert isinstance(outcome, InvalidFile), outcome
    found = [(each.code, each.lines, each.column) for each in outcome.problems]
    assert found == [(RACES[race][1], (2,), "guardian")]
    assert (await users_by_local_part(auth, domain))["ben"].guardians == ()


@pytest.mark.parametrize("race", RACES)
async def test_control_without_the_check_an_import_breaks_the_rules_of_guardians(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch, race: str
) -> None:
    monkeypatch.setattr(UserImportWriter, "_check_guardians", check_nothing)
    outcome = await import_during(auth, other_process, domain, monkeypatch, race)
    assert isinstance(outcome, ImportResult), outcome
    users = await users_by_local_part(auth, domain)
    assert users["ben"].guardians == (users["pam"].id,)


@pytest.mark.parametrize("is_checked", [True, False])
async def test_a_child_that_gets_a_name_of_the_file_during_an_import_is_no_second_one(
    auth: Auth,
    other_process: Auth,
    domain: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_checked: bool,
) -> None:
    """Without the check, the guardian has two children whom no file tells apart: the control."""
    await import_text(auth, domain, "name,guardian\nMia,pam@\n")
    pam = (await users_by_local_part(auth, domain))["pam"]

    async def children() -> list[User]:
        return list(await auth.repositories.users.find_dependents([pam.id]))

    async def rename() -> None:
        [mia] = await children()
        renamed = await account_admin.update_user(other_process, ADMIN, mia.id, "Ben", None)
        assert isinstance(renamed, account_admin.UserUpdated)

    act_during_import(monkeypatch, rename, is_within=False)
    if not is_checked:
        monkeypatch.setattr(UserImportWriter, "_check_guardians", check_nothing)
    outcome = await import_text(auth, domain, "name,guardian\nBen,pam@\n")
    assert isinstance(outcome, ImportResult), outcome
    assert [each.name for each in await children()] == ["Ben"] * (1 if is_checked else 2)


@pytest.mark.parametrize("ban_is", ["before", "within", "before, unchecked"])
async def test_who_is_banned_during_an_import_leads_nothing_by_it(
    auth: Auth,
    other_process: Auth,
    domain: str,
    monkeypatch: pytest.MonkeyPatch,
    ban_is: str,
) -> None:
    """Without the check, the banned user leads the resource: the control."""
    pam, name = (await four_users(auth, domain))["pam"], f"Staff {domain}"
    store = auth.repositories
    assert isinstance(store, Repositories)
    await store.resources.insert(Resource(name, ResourceKind.STAFF))
    act_during_import(monkeypatch, partial(ban, other_process, pam), is_within=ban_is == "within")
    is_checked = "unchecked" not in ban_is
    if not is_checked:
        monkeypatch.setattr(UserImportWriter, "_check_able", check_nothing)
    outcome = await import_text(auth, domain, f"email,leads\npam@,{name}\n")
    if is_checked:
        assert isinstance(outcome, InvalidFile), outcome
        found = [(each.code, each.lines, each.column) for each in outcome.problems]
        assert found == [("USER_IS_BANNED", (2,), "leads")]
    assert await store.resources.find_led(pam.id) == ([] if is_checked else [name])


async def test_the_guardian_of_an_import_who_is_erased_meanwhile_is_a_new_one(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = await four_users(auth, domain)
    act = partial(account_admin.erase_account, other_process, ADMIN, users["pam"].id)
    act_during_import(monkeypatch, act, is_within=False)
    outcome = await import_text(auth, domain, "email,guardian\nben@,pam@\n")
    assert isinstance(outcome, ImportResult)
    assert (outcome.created, outcome.links_added) == (1, 1)
    after = await users_by_local_part(auth, domain)
    assert after["ben"].guardians == (after["pam"].id,) != (users["pam"].id,)


async def test_a_child_whom_an_organizer_creates_during_an_import_is_created_once(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pam = (await four_users(auth, domain))["pam"]
    created: list[object] = []

    async def create() -> None:
        guardians = [pam.id]
        created.append(
            await account_admin.create_invited_user(
                other_process, ADMIN, "MIA", None, [], Role.MEMBER, guardians=guardians
            )
        )

    act_during_import(monkeypatch, create, is_within=False)
    outcome = await import_text(auth, domain, "name,guardian\nMia,pam@\n")
    assert isinstance(outcome, ImportResult)
    assert (outcome.created, outcome.updated) == (0, 1)
    assert isinstance(created[0], account_admin.UserCreated)
    (mia,) = await auth.repositories.users.find_dependents([pam.id])
    assert (mia.id, mia.name) == (created[0].user.id, "Mia")
