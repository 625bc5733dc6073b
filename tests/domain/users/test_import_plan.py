"""An import makes people as the file says, and touches nothing that it does not speak of."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from slotlock.domain.users import import_plan
from slotlock.domain.users.import_file import InvalidUserFile, UserRow
from slotlock.domain.users.import_plan import ImportPlan, NewUser, UserUpdate, plan_import
from slotlock.domain.users.user import Role, User, UserId

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ADA = User(UserId("a" * 24), "Ada", "ada@x.org", Role.ADMIN, NOW, ("5a", "choir"))
KNOWN = {ADA.email: ADA}


def words_of(name: str, email: str) -> list[str]:
    """Stands for the words that people are searched by."""
    return [*name.split(), email]


def plan_of(rows: Sequence[UserRow], known: Mapping[str, User]) -> ImportPlan:
    plan = plan_import(rows, known, words_of)
    assert isinstance(plan, ImportPlan)
    return plan


def row(name: str | None = "Ada", groups: tuple[str, ...] | None = ("5a", "choir")) -> UserRow:
    return UserRow(2, ADA.email, name, groups)


def test_somebody_new_is_created_as_the_file_says() -> None:
    plan = plan_of([UserRow(2, "ben@x.org", "Ben", ("5b",))], KNOWN)
    assert plan.created == (NewUser("ben@x.org", "Ben", ("5b",)),)
    assert not plan.updated


def test_somebody_new_without_a_name_is_called_as_their_address_begins() -> None:
    plan = plan_of([UserRow(2, "ben@x.org", None, None)], KNOWN)
    assert plan.created == (NewUser("ben@x.org", "ben", ()),)


def test_somebody_who_is_as_the_file_says_is_left_alone() -> None:
    for same in (row(), row(name=None), row(groups=None), row(None, None)):
        plan = plan_of([same], KNOWN)
        assert plan.is_empty
        assert plan.unchanged == 1


def test_a_name_and_groups_become_those_of_the_file() -> None:
    plan = plan_of([row("Ada L.", ())], KNOWN)
    assert plan.updated == (UserUpdate(ADA, "Ada L.", ()),)


def test_what_the_file_has_no_column_for_stays() -> None:
    assert plan_of([row("Ada L.", None)], KNOWN).updated == (UserUpdate(ADA, "Ada L.", ADA.groups),)
    assert plan_of([row(None, ("6a",))], KNOWN).updated == (UserUpdate(ADA, "Ada", ("6a",)),)


def test_everybody_in_the_file_is_counted_once() -> None:
    rows = [row("Ada L."), UserRow(3, "ben@x.org", "Ben", ())]
    plan = plan_of(rows, KNOWN)
    assert (len(plan.created), len(plan.updated), plan.unchanged) == (1, 1, 0)
    assert not plan.is_empty


@pytest.mark.parametrize(
    ("rows", "marks"),
    [
        ([UserRow(2, "ben@x.org", "Ben B.", ("5b",))], 4),  # three words and a group
        ([row("Ada", ())], 2),
        ([row("Ada", ("5a", "6a"))], 2),
        ([row("Ada L.", None)], 1),
        ([row("Eva", None)], 2),
        ([row(), UserRow(3, "ben@x.org", None, None)], 2),
    ],
)
def test_what_comes_and_what_goes_at_once_is_limited(
    rows: list[UserRow], marks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", marks)
    assert not plan_of(rows, KNOWN).is_empty
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", marks - 1)
    assert isinstance(plan_import(rows, KNOWN, words_of), InvalidUserFile)


def test_a_file_in_which_too_much_changes_is_to_be_split_before_the_line_that_is_too_much() -> None:
    groups = tuple(map(str, range(18)))  # and two words
    rows = [UserRow(line, f"{line}@x.org", "Ada", groups) for line in range(2, 10_002)]
    refused = plan_import(rows, {}, words_of)
    assert isinstance(refused, InvalidUserFile)
    assert refused.count == 1
    (problem,) = refused.problems
    assert (problem.line, problem.column) == (5_002, None)
    assert "100000" in problem.message
    assert "Split the file before this line." in problem.message
    before, after = rows[:5_000], rows[5_000:]
    assert len(plan_of(before, {}).created) == len(plan_of(after, {}).created) == 5_000


def test_who_is_as_the_file_says_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_plan, "MAX_INDEX_CHANGES", 0)
    assert plan_of([row()], KNOWN).is_empty
