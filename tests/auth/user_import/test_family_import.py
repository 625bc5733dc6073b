"""Import children with their guardians, and teachers with what they lead."""

import asyncio
from collections.abc import Sequence

import pytest
from bson import ObjectId

from slotlock.auth import accounts
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.auth.invitations import invite
from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.plan import ImportResult
from slotlock.domain.users.user import Role, User, UserFilter, UserId
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.imports import UserImportWriter
from tests.support.clients.user_files import users_by_local_part
from tests.support.stores.empty_database import stored_database

# Nine addresses, of which two are of separated pairs, and one of a mother who teaches. Zoe signs in
# with an address of her own.
PRIMARY_SCHOOL = """\
Nachname;Vorname;Klasse;E-Mail;E-Mail der Eltern;Name der Eltern
Adam;Ali;1a;;ana.adam@{d};Adam, Ana
Adam;Aya;2b;;ana.adam@{d};Adam, Ana
Berg;Ben;1a;;pam@{d}, pit@{d};Pam Berg
Berg;Bea;3a;;pit@{d};Pit Berg
Cho;Cem;2b;;cho@{d};
Cho;Cleo;2b;;cho@{d};
Dahl;Dan;3a;;dora@{d}, dirk@{d};Dora Dahl; Dirk Dahl
Dahl;Dina;1a;;dora@{d}, dirk@{d};Dora Dahl; Dirk Dahl
Ems;Eva;2b;;teacher@{d};Emma Ems
Fink;Fay;3a;;fink@{d};
Gold;Gil;1a;;gold@{d};
Gold;Zoe;3a;zoe@{d};gold@{d};
"""


@pytest.fixture
def store(auth: Auth) -> Repositories:
    """Return the repositories of an app."""
    assert isinstance(auth.repositories, Repositories)
    return auth.repositories


def primary_school(domain: str) -> bytes:
    lines = PRIMARY_SCHOOL.format(d=domain).splitlines()
    # A semicolon separates two names, so that Excel quotes the cell.
    return "\r\n".join(
        line.replace("Dora Dahl; Dirk Dahl", '"Dora Dahl; Dirk Dahl"') for line in lines
    ).encode("cp1252")


async def imported(auth: Auth, body: bytes, *, dry_run: bool = False) -> ImportResult:
    outcome = await import_users(auth, body, dry_run=dry_run)
    assert isinstance(outcome, ImportResult), outcome
    return outcome


async def families(auth: Auth, users: Sequence[User]) -> dict[str, list[str]]:
    """Return the names of the children of these users, by the first part of their addresses."""
    found = await auth.repositories.users.find_dependents([each.id for each in users])
    return {
        guardian.login_name.partition("@")[0]: sorted(
            child.name for child in found if guardian.id in child.guardians
        )
        for guardian in users
    }


async def test_a_primary_school_is_imported_at_the_first_try_and_twice_changes_nothing(
    auth: Auth, domain: str
) -> None:
    address = f"teacher@{domain}"
    teacher = await accounts.create_user(
        auth, "Ms. Ems", address, "some long words", Role.ORGANIZER
    )
    assert isinstance(teacher, User)
    body = primary_school(domain)
    preview = await imported(auth, body, dry_run=True)
    first = await imported(auth, body)
    assert (first.created, first.links_added, first.links_removed) == (20, 15, 0)
    assert (preview.created, preview.links_added) == (20, 15)
    again = await imported(auth, body)
    assert (again, again.leavers) == (ImportResult(0, 0, 12, dry_run=False), ())
    by_address = await users_by_local_part(auth, domain)
    assert by_address["teacher"] == teacher
    found = await families(auth, [each for name, each in by_address.items() if name != "zoe"])
    assert found == {
        "ana.adam": ["Ali Adam", "Aya Adam"],
        "pam": ["Ben Berg"],
        "pit": ["Bea Berg", "Ben Berg"],
        "cho": ["Cem Cho", "Cleo Cho"],
        "dora": ["Dan Dahl", "Dina Dahl"],
        "dirk": ["Dan Dahl", "Dina Dahl"],
        "teacher": ["Eva Ems"],
        "fink": ["Fay Fink"],
        "gold": ["Gil Gold", "Zoe Gold"],
    }
    assert [by_address[each].name for each in ("ana.adam", "pam", "dirk", "cho")] == [
        *("Adam, Ana", "Pam Berg", "Dirk Dahl", "cho")
    ]


async def test_guardians_are_invited_and_children_without_a_login_name_are_not(
    auth: Auth, domain: str
) -> None:
    group, other = f"2b {domain}", f"3a {domain}"
    lines = (f"Mia,,pam@{domain},{group}", f"Zoe,zoe@{domain},pam@{domain},{other}")
    await imported(auth, "\n".join(("name,email,guardian,class", *lines)).encode())

    async def invited(only: str | None) -> dict[str, tuple[str, ...]]:
        found = [each async for each in invite(auth, only, [Role.MEMBER])]
        assert not any(each.user.has_made_login_name for each in found)
        return {each.user.login_name.removesuffix(f"@{domain}"): each.groups for each in found}

    everybody = await invited(None)
    assert (everybody["pam"], everybody["zoe"]) == ((group, other), (other,))
    # A letter is for the class of the child.
    assert await invited(group) == {"pam": (group, other)}
    waiting = UserFilter(group=group, without_password=True)
    found = (await auth.repositories.users.page(waiting, 9, None)).items
    assert [each.login_name for each in found] == [f"pam@{domain}"]


async def test_an_empty_cell_removes_guardians_and_the_log_names_both_by_their_ids(
    auth: Auth, mongo_url: str, domain: str
) -> None:
    text = f"email,guardian\nmia@{domain},pam@{domain} tom@{domain}\n"
    await imported(auth, text.encode())
    users = await users_by_local_part(auth, domain)
    parents = (users["pam"].id, users["tom"].id)
    assert users["mia"].guardians == parents
    removed = await imported(auth, f"email,guardian\nmia@{domain},\n".encode())
    assert (removed.updated, removed.links_removed) == (1, 2)
    assert (await users_by_local_part(auth, domain))["mia"].guardians == ()
    database = stored_database(mongo_url)
    stored = database["users"].find_one({"_id": ObjectId(users["mia"].id)})
    assert stored is not None
    assert "guardians" not in stored
    edits = [
        (edit.get("before"), edit.get("after"))
        for note in database["audit_notes"].find({"action": NoteAction.USERS_IMPORTED.value})
        for edit in note["edits"]
        if edit["field"] == "guardians" and str(edit["user"]) == users["mia"].id
    ]
    text = ", ".join(f"user_{each}" for each in parents)
    assert sorted(edits, key=str) == [(text, None), (None, text)]


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_two_imports_at_once_create_a_child_once(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    await imported(auth, f"email,name\npam@{domain},Pam\n".encode())
    if not is_guarded:

        async def never(*_: object) -> None:
            pass

        for guard in ("_bump_version", "_check_guardians"):
            monkeypatch.setattr(UserImportWriter, guard, never)
    load, both = UserImportWriter.load_snapshot, asyncio.Barrier(2)
    waits = [True, True]

    async def load_together(self: UserImportWriter, *args: object, **options: object) -> object:
        snapshot = await load(self, *args, **options)  # type: ignore[arg-type]
        if waits:
            waits.pop()
            await both.wait()
        return snapshot

    monkeypatch.setattr(UserImportWriter, "load_snapshot", load_together)
    body = f"name,guardian\nMia,pam@{domain}\n".encode()
    outcomes = await asyncio.gather(imported(auth, body), imported(other_process, body))
    monkeypatch.undo()
    pam = (await users_by_local_part(auth, domain))["pam"]
    children = (await families(auth, [pam]))["pam"]
    assert children == (["Mia"] if is_guarded else ["Mia", "Mia"])
    assert sum(each.created for each in outcomes) == len(children)


async def test_who_registers_the_address_of_a_parent_during_an_import_gets_no_child(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, address = UserImportWriter.load_snapshot, f"pam@{domain}"

    async def register_after_load(
        self: UserImportWriter, *args: object, **options: object
    ) -> object:
        snapshot = await load(self, *args, **options)  # type: ignore[arg-type]
        await accounts.register(auth, "Stranger", address, "correct horse battery")
        return snapshot

    monkeypatch.setattr(UserImportWriter, "load_snapshot", register_after_load)
    outcome = await import_users(auth, f"name,guardian\nMia,{address}\n".encode(), dry_run=False)
    assert isinstance(outcome, InvalidFile)
    assert [each.code for each in outcome.problems] == ["SELF_REGISTERED_GUARDIAN"]


async def test_a_file_gives_teachers_what_they_lead_also_if_another_changed_it_meanwhile(
    auth: Auth, store: Repositories, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"Staff {number} {domain}" for number in range(2)]
    for name in names:
        await store.resources.insert(Resource(name, ResourceKind.STAFF))
    text = f"email,leads\nada@{domain},{names[0]}; {names[1]}\n"
    first = await imported(auth, text.encode())
    assert (first.created, first.leaders_changed) == (1, 2)
    ada = (await users_by_local_part(auth, domain))["ada"]
    assert sorted(await store.resources.find_led(ada.id)) == names
    other, load = UserId(str(ObjectId())), UserImportWriter.load_snapshot
    taken = Resource(names[0], ResourceKind.STAFF, other)

    async def change_after_load(self: UserImportWriter, *args: object, **options: object) -> object:
        snapshot = await load(self, *args, **options)  # type: ignore[arg-type]
        await store.resources.update(taken, other, auth.now())
        return snapshot

    monkeypatch.setattr(UserImportWriter, "load_snapshot", change_after_load)
    second = await imported(auth, f"email,leads\nada@{domain},{names[1]}\n".encode())
    # By then, another led the first one.
    assert second.leaders_changed == 0
    assert await store.resources.find_led(other) == [names[0]]
    monkeypatch.undo()
    none = await imported(auth, f"email,leads\nada@{domain},\n".encode())
    assert (none.updated, none.leaders_changed, none.without_leader) == (0, 1, (names[1],))
    assert await store.resources.find_led(ada.id) == []


async def test_a_line_can_rename_a_child_and_add_a_guardian(auth: Auth, domain: str) -> None:
    for name, guardian in (("Ben", "pam"), ("Benny", "tom")):
        line = f"email,name,guardian\nben@{domain},{name},{guardian}@{domain}\n"
        await imported(auth, line.encode())
    users = await users_by_local_part(auth, domain)
    assert (users["ben"].name, users["ben"].guardians) == ("Benny", (users["tom"].id,))
    line = f"email,name,guardian\nben@{domain},Ben,pam@{domain}\n"
    assert (await imported(auth, line.encode())).updated == 1
