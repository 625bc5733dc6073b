"""An import makes people as the file says, and touches nothing that it does not speak of."""

from datetime import UTC, datetime

from slotlock.domain.people import Role, User, UserId
from slotlock.domain.people_import import Row
from slotlock.domain.people_plan import Edit, NewPerson, plan_import

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ADA = User(UserId("a" * 24), "Ada", "ada@x.org", Role.ADMIN, NOW, ("5a", "choir"))
KNOWN = {ADA.email: ADA}


def row(name: str | None = "Ada", groups: tuple[str, ...] | None = ("5a", "choir")) -> Row:
    return Row(2, ADA.email, name, groups)


def test_somebody_new_is_created_as_the_file_says() -> None:
    plan = plan_import([Row(2, "ben@x.org", "Ben", ("5b",))], KNOWN)
    assert plan.created == (NewPerson("ben@x.org", "Ben", ("5b",)),)
    assert not plan.updated


def test_somebody_new_without_a_name_is_called_as_their_address_begins() -> None:
    plan = plan_import([Row(2, "ben@x.org", None, None)], KNOWN)
    assert plan.created == (NewPerson("ben@x.org", "ben", ()),)


def test_somebody_who_is_as_the_file_says_is_left_alone() -> None:
    for same in (row(), row(name=None), row(groups=None), row(None, None)):
        plan = plan_import([same], KNOWN)
        assert plan.empty
        assert plan.unchanged == 1


def test_a_name_and_groups_become_those_of_the_file() -> None:
    plan = plan_import([row("Ada L.", ())], KNOWN)
    assert plan.updated == (Edit(ADA, "Ada L.", ()),)


def test_what_the_file_has_no_column_for_stays() -> None:
    assert plan_import([row("Ada L.", None)], KNOWN).updated == (Edit(ADA, "Ada L.", ADA.groups),)
    assert plan_import([row(None, ("6a",))], KNOWN).updated == (Edit(ADA, "Ada", ("6a",)),)


def test_everybody_in_the_file_is_counted_once() -> None:
    rows = [row("Ada L."), Row(3, "ben@x.org", "Ben", ())]
    plan = plan_import(rows, KNOWN)
    assert (len(plan.created), len(plan.updated), plan.unchanged) == (1, 1, 0)
    assert not plan.empty
