"""Planning an import: which users are created, updated and unchanged."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from slotlock.domain.users import import_plan
from slotlock.domain.users.import_file import InvalidUserFile, UserRow
from slotlock.domain.users.import_plan import ImportPlan, NewUser, UserUpdate, plan_import
from slotlock.domain.users.user import Role, User, UserId

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ADA = User(UserId("a" * 24), "Ada", "ada@x.org", Role.ADMIN, NOW, ("5a", "choir"))
EXISTING = {ADA.email: ADA}


def plan_of(rows: Sequence[UserRow], existing: Mapping[str, User]) -> ImportPlan:
    plan = plan_import(rows, existing)
    assert isinstance(plan, ImportPlan)
    return plan


def row(name: str | None = "Ada", groups: tuple[str, ...] | None = ("5a", "choir")) -> UserRow:
    return UserRow(2, ADA.email, name, groups)


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
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", index_changes)
    assert not plan_of(rows, EXISTING).is_empty
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", index_changes - 1)
    assert isinstance(plan_import(rows, EXISTING), InvalidUserFile)


def test_a_file_with_too_many_changes_names_the_line_before_which_to_split_it() -> None:
    groups = tuple(map(str, range(16)))  # 20 index changes with four search words
    rows = [UserRow(line, f"{line}@x.org", "Ada", groups) for line in range(2, 10_002)]
    outcome = plan_import(rows, {})
    assert isinstance(outcome, InvalidUserFile)
    assert outcome.count == 1
    (problem,) = outcome.problems
    assert (problem.line, problem.column) == (5_002, None)
    assert "100000" in problem.message
    assert "split it before this line" in problem.message
    before, after = rows[:5_000], rows[5_000:]
    assert len(plan_of(before, {}).created) == len(plan_of(after, {}).created) == 5_000


def test_unchanged_users_cause_no_index_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", 0)
    assert plan_of([row()], EXISTING).is_empty
