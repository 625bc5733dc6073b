"""What an import changes, and who may ban whom."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.audit_notes import note_user_change, user_edits
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.identities import IdentityChange
from slotlock.domain.user_files.plan import ImportPlan, NewUser, UserUpdate, plan_import
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.account_admin_rules import (
    AdminRequired,
    CannotBanSelf,
    ban_refusal,
    manageable_roles,
)
from slotlock.domain.users.groups import similar_groups
from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import Caller, Role, User, UserId, list_name, split_name

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ADA = User(UserId("a" * 24), "Ada", "ada@x.org", Role.ADMIN, NOW, ("5a", "choir"))
EXISTING = {ADA.login_name: ADA}
SELF, OTHER = UserId("a" * 24), UserId("b" * 24)


def plan_of(rows: Sequence[UserRow], existing: Mapping[str, User]) -> ImportPlan:
    plan = plan_import(rows, existing)
    assert isinstance(plan, ImportPlan)
    return plan


def row(name: str | None = "Ada", groups: tuple[str, ...] | None = ("5a", "choir")) -> UserRow:
    return UserRow(2, ADA.login_name, name, groups)


def test_a_new_address_creates_a_user_with_the_fields_of_the_row() -> None:
    plan = plan_of([UserRow(2, "ben@x.org", "Ben", ("5b",))], EXISTING)
    assert plan.created == (NewUser("ben@x.org", "Ben", ("5b",)),)
    assert not plan.updated


def test_a_new_user_without_a_name_is_named_after_the_address() -> None:
    plan = plan_of([UserRow(2, "ben@x.org", None, None)], EXISTING)
    assert plan.created == (NewUser("ben@x.org", "ben", ()),)


def test_a_user_who_equals_the_row_is_unchanged() -> None:
    for equal_row in (row(), row(name=None), row(groups=None), row(None, None)):
        plan = plan_of([equal_row], EXISTING)
        assert plan.is_empty
        assert plan.unchanged == 1


def test_name_and_groups_become_those_of_the_row() -> None:
    plan = plan_of([row("Ada L.", ())], EXISTING)
    assert plan.updated == (UserUpdate(ADA, "Ada L.", ()),)


def test_fields_of_missing_columns_do_not_change() -> None:
    assert plan_of([row("Ada L.", None)], EXISTING).updated == (
        UserUpdate(ADA, "Ada L.", ADA.groups),
    )
    assert plan_of([row(None, ("6a",))], EXISTING).updated == (UserUpdate(ADA, "Ada", ("6a",)),)


def test_every_row_is_counted_once() -> None:
    rows = [row("Ada L."), UserRow(3, "ben@x.org", "Ben", ())]
    plan = plan_of(rows, EXISTING)
    assert (len(plan.created), len(plan.updated), plan.unchanged) == (1, 1, 0)
    assert not plan.is_empty


@pytest.mark.parametrize(
    ("rows", "index_changes"),
    [
        ([UserRow(2, "ben@x.org", "Ben B.", ("5b",))], 5),  # four words and a group
        ([row("Ada", ())], 2),
        ([row("Ada", ("5a", "6a"))], 2),
        ([row("Ada L.", None)], 1),
        ([row("Eva", None)], 1),  # the address still has the other word
        ([row(), UserRow(3, "ben@x.org", None, None)], 3),
    ],
)
def test_the_number_of_index_changes_is_limited(
    rows: list[UserRow], index_changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotlock.domain.user_files.plan.MAX_INDEX_CHANGES", index_changes)
    assert not plan_of(rows, EXISTING).is_empty
    monkeypatch.setattr("slotlock.domain.user_files.plan.MAX_INDEX_CHANGES", index_changes - 1)
    assert isinstance(plan_import(rows, EXISTING), InvalidFile)


def test_a_file_with_too_many_changes_names_the_line_before_which_to_split_it() -> None:
    groups = tuple(map(str, range(16)))  # 20 index changes with four search words
    rows = [UserRow(line, f"{line}@x.org", "Ada", groups) for line in range(2, 10_002)]
    outcome = plan_import(rows, {})
    assert isinstance(outcome, InvalidFile)
    assert outcome.count == 1
    (problem,) = outcome.problems
    assert (problem.lines, problem.column) == ((5_002,), None)
    assert "100000" in problem.message
    assert "split it before this line" in problem.message
    before, after = rows[:5_000], rows[5_000:]
    assert len(plan_of(before, {}).created) == len(plan_of(after, {}).created) == 5_000


def test_unchanged_users_cause_no_index_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slotlock.domain.user_files.plan.MAX_INDEX_CHANGES", 0)
    assert plan_of([row()], EXISTING).is_empty


ONE, TWO = (Identity("https://a.test", subject) for subject in "12")
ELSEWHERE = Identity("https://b.test", "1")


@pytest.mark.parametrize(
    ("own", "new", "removed"),
    [
        ({}, ONE, ()),
        ({ELSEWHERE: NOW}, ONE, ()),
        ({ELSEWHERE: None}, ONE, ()),
        ({TWO: None, ELSEWHERE: NOW}, ONE, (TWO,)),
        ({ONE: None}, ONE, None),
        ({ONE: NOW, TWO: NOW}, ONE, None),
        ({ONE: None}, None, None),
        ({TWO: NOW}, ONE, ImportProblem.OTHER_SUBJECT),
        ({TWO: NOW, ELSEWHERE: None}, ONE, ImportProblem.OTHER_SUBJECT),
    ],
)
def test_a_subject_replaces_only_one_of_its_provider_that_nobody_used(
    own: dict[Identity, datetime | None],
    new: Identity | None,
    removed: tuple[Identity, ...] | ImportProblem | None,
) -> None:
    linked = {ADA.id: [LinkedIdentity(each, None, at) for each, at in own.items()]}
    plan = plan_import([replace(row(), identity=new)], EXISTING, linked=linked)
    if isinstance(removed, ImportProblem):
        assert isinstance(plan, InvalidFile)
        assert [(each.code, each.lines) for each in plan.problems] == [(removed, (2,))]
        return
    assert isinstance(plan, ImportPlan)
    changes = [update.identities for update in plan.updated]
    assert changes == ([] if removed is None else [IdentityChange(new, removed)])


def test_a_subject_for_an_account_of_staff_needs_an_admin() -> None:
    rows = [replace(row(), identity=ONE)]
    organizer = Caller(OTHER, Role.ORGANIZER, "session", NOW)
    plan = plan_import(rows, EXISTING, organizer)
    assert isinstance(plan, InvalidFile)
    assert [each.code for each in plan.problems] == [ImportProblem.ADMIN_REQUIRED]
    admin = replace(organizer, role=Role.ADMIN)
    assert isinstance(plan_import(rows, EXISTING, admin), ImportPlan)


def test_an_import_of_an_admin_adds_no_subject_to_the_own_account() -> None:
    plan = plan_import([replace(row(), identity=ONE)], EXISTING, caller(Role.ADMIN))
    assert isinstance(plan, InvalidFile)
    assert [each.code for each in plan.problems] == [ImportProblem.SUBJECT_BY_ADMIN]


def user(role: Role, user_id: UserId = OTHER) -> User:
    return User(user_id, "Ada", "ada@x.org", role, NOW)


def caller(role: Role) -> Caller:
    return Caller(SELF, role, "session", NOW)


def test_an_organizer_can_ban_members() -> None:
    assert ban_refusal(caller(Role.ORGANIZER), user(Role.MEMBER)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_only_admins_can_ban_organizers_and_admins(role: Role) -> None:
    assert ban_refusal(caller(Role.ORGANIZER), user(role)) == AdminRequired()
    assert ban_refusal(caller(Role.ADMIN), user(role)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_users_cannot_ban_themselves(role: Role) -> None:
    assert ban_refusal(caller(role), user(role, SELF)) == CannotBanSelf()


def test_organizers_can_invite_members_only() -> None:
    assert manageable_roles(caller(Role.ORGANIZER)) == (Role.MEMBER,)
    assert set(manageable_roles(caller(Role.ADMIN))) == set(Role)


def test_a_user_with_a_ban_date_is_banned() -> None:
    assert not user(Role.MEMBER).banned
    assert User(SELF, "Ada", "ada@x.org", Role.MEMBER, NOW, banned_at=NOW).banned


@pytest.mark.parametrize(
    ("groups", "known", "expected"),
    [
        ({"6c"}, ["06C", "6C", "16c", "6d"], (("06C", "6C", "6c"),)),
        ({"6C"}, ["6C"], ()),
        ({"6C", "6c"}, [], (("6C", "6c"),)),
        ({"choir"}, ["6C", "6c"], ()),  # the file has neither
        ({"class 007", "10"}, ["Class 7", "1"], (("Class 7", "class 007"),)),
        ({"6 c"}, ["6c", "6 C", "6-c"], (("6 C", "6 c", "6c"),)),
        ({"1 1", "Q1 \u2013 Art"}, ["11", "Q1-Art"], (("Q1 \u2013 Art", "Q1-Art"),)),
        # Limits of all groups with a prefix.
        ({"class:*"}, ["class:5a", "Class:5b"], (("Class:5b", "class:*"),)),
        ({"05a"}, ["5*", "5b", "*"], (("05a", "5*"),)),
        ({"5c"}, ["5*", "05a"], ()),
    ],
)
def test_groups_that_differ_only_in_capitals_zeros_blanks_or_dashes_are_similar(
    groups: set[str], known: list[str], expected: tuple[tuple[str, ...], ...]
) -> None:
    assert similar_groups(groups, known) == expected


@pytest.mark.parametrize(
    ("name", "family_name", "split", "listed"),
    [
        ("Björn Becker", "Becker", ("Becker", "Björn"), "Becker, Björn"),
        ("Anna von der Heide", "von der Heide", ("von der Heide", "Anna"), "von der Heide, Anna"),
        ("王小明", "王", ("王", "小明"), "王小明"),
        ("Björn Müller", "Becker", ("Björn Müller", ""), "Björn Müller"),  # renamed since
        ("Becker", "Becker", ("Becker", ""), "Becker"),
        ("Björn Becker", None, ("Björn Becker", ""), "Björn Becker"),
    ],
)
def test_a_name_is_split_as_the_file_had_it_until_somebody_changes_it(
    name: str, family_name: str | None, split: tuple[str, str], listed: str
) -> None:
    assert split_name(name, family_name) == split
    assert list_name(name, family_name) == listed


def test_a_file_with_family_names_adds_them_to_the_accounts_once() -> None:
    given = replace(row(), family_name="Lovelace")
    assert plan_of([given], {}).created[0].family_name == "Lovelace"
    (update,) = plan_of([given], EXISTING).updated
    assert update == UserUpdate(ADA, "Ada", ("5a", "choir"), family_name="Lovelace")
    known = replace(ADA, family_name="Lovelace")
    for again in (given, row()):  # a file without family names removes none
        assert plan_of([again], {ADA.login_name: known}).updated == ()


def test_a_note_shows_guardians_by_the_ids_that_clients_know() -> None:
    child = replace(ADA, guardians=(SELF, OTHER))
    shown = (None, f"user_{SELF}, user_{OTHER}")
    note = note_user_change(ADA, child, NoteAction.USER_EDITED, OTHER, NOW)
    assert note is not None
    assert note.edits == (FieldEdit("guardians", *shown),)
    assert user_edits(ADA, child, "name", "guardians") == (FieldEdit("guardians", *shown, ADA.id),)
    assert user_edits(child, ADA, "guardians")[0].after is None
