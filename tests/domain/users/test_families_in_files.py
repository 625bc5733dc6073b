"""Files of children with their guardians, and of those who lead resources."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from slotlock.domain.resources.resource import Resource, ResourceKind, unknown_resource
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files import user_file
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.user_files.leaders import LeaderChange
from slotlock.domain.user_files.plan import ImportPlan, plan_import
from slotlock.domain.user_files.sync_plan import plan_sync
from slotlock.domain.user_files.user_file import NamedGuardian, UserRow, parse_user_file
from slotlock.domain.users.dependents import MAX_DEPENDENTS
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.users.user_documents import new_login_name
from tests.support.domain.builders import NOW

NO_CHOICES = Choices()


def rows_of(text: str, *, addresses_of_guardians: bool = False) -> list[UserRow]:
    """Return the rows of a valid file; those without a login name have a made one."""
    file = parse_user_file(text.encode(), addresses_of_guardians=addresses_of_guardians)
    assert not isinstance(file, InvalidFile), file
    return [
        each if each.login_name else replace(each, login_name=new_login_name())
        for each in file.rows
    ]


def user(login_name: str, name: str = "", *guardians: User, **values: object) -> User:
    """Return the account of a member."""
    ids = tuple(each.id for each in guardians)
    made = User(UserId(f"id of {login_name}"), name or login_name, login_name, Role.MEMBER, NOW)
    return replace(made, guardians=ids, **values)  # type: ignore[arg-type]


def plan(
    text: str,
    *users: User,
    choices: Choices = NO_CHOICES,
    resources: Sequence[Resource] = (),
    addresses_of_guardians: bool = False,
) -> ImportPlan | InvalidFile:
    rows = rows_of(text, addresses_of_guardians=addresses_of_guardians)
    known = {each.login_name: each for each in users}
    return plan_import(rows, known, choices=choices, resources=resources)


def planned(text: str, *users: User, **values: object) -> ImportPlan:
    """Return the plan of a file that has one."""
    made = plan(text, *users, **values)  # type: ignore[arg-type]
    assert isinstance(made, ImportPlan), made
    return made


def codes(outcome: object) -> list[tuple[str, tuple[int, ...], str | None]]:
    """Return the problems of a file: code, lines and column."""
    assert isinstance(outcome, InvalidFile), outcome
    return [(each.code, each.lines, each.column) for each in outcome.problems]


PAM, TOM = user("pam@x.org", "Pam"), user("tom@x.org", "Tom")
MIA = user("child abc", "Mia Münz", PAM)


@pytest.mark.parametrize(
    "header",
    [
        "Name,guardian,guardian_name,guardian,guardian_name",
        "Name,E-Mail Mutter,Name Mutter,E-Mail Vater,Name Vater",
        "Name,E-Mail der Mutter,Mutter,Vater: E-Mail,Vater",
        "Name,Email Erziehungsberechtigte 1,Mutter,Email Erziehungsberechtigte 2,Vater",
        "Schüler,E-Mail 1,Erziehungsberechtigter 1,E-Mail 2,Erziehungsberechtigter 2",
        "姓名,邮箱1,家长1,邮箱2,家长2",
        "Name,Parent 1 Email,Parent 1 Name,Parent 2 Email,Parent 2 Name",
        "nom complet,courriel parent 1,nom du parent 1,courriel parent 2,nom du parent 2",
        "nombre completo,correo de la madre,nombre de la madre,correo del padre,nombre del padre",
        "姓名,家长邮箱1,家长姓名1,家长邮箱2,家长姓名2",
        "姓名,家長信箱1,家長姓名1,家長信箱2,家長姓名2",
    ],
)
def test_guardians_have_two_columns_in_the_languages_of_schools(header: str) -> None:
    (row,) = rows_of(f"{header}\nMia, PAM@x.org ,Pam P.,tom@x.org,\n")
    assert row.guardians == (NamedGuardian("pam@x.org", "Pam P."), NamedGuardian("tom@x.org"))


@pytest.mark.parametrize(
    ("cell", "names", "expected"),
    [
        ("pam@x.org; tom@x.org", "Pam P.; Tom T.", ("Pam P.", "Tom T.")),
        ("pam@x.org, tom@x.org", "Münz, Pam", ("Münz, Pam", None)),
        ("pam@x.org tom@x.org pam@x.org", "", (None, None)),
        ("pam@x.org, tom@x.org", "Pam P., Tom T.", ("Pam P.", "Tom T.")),
        ("pam@x.org / tom@x.org", "P., Pam / T., Tom", ("P., Pam", "T., Tom")),
        ("pam@x.org\uff0ctom@x.org", "王芳\uff0c李明", ("王芳", "李明")),
        ("pam@x.org tom@x.org", "Pam P. und Tom T.", ("Pam P.", "Tom T.")),
        ("pam@x.org tom@x.org", "Pam und Tom P.", ("Pam und Tom P.", None)),
    ],
)
def test_a_cell_may_have_two_guardians(
    cell: str, names: str, expected: tuple[str | None, ...]
) -> None:
    (row,) = rows_of(f'name;guardian;guardian_name\nMia;"{cell}";"{names}"\n')
    assert row.guardians == tuple(map(NamedGuardian, ("pam@x.org", "tom@x.org"), expected))


def test_a_comma_is_a_part_of_the_name_of_one_guardian() -> None:
    (mia,) = rows_of('name;guardian;guardian_name\nMia;pam@x.org;"Pam P., Tom T."\n')
    assert mia.guardians == (NamedGuardian("pam@x.org", "Pam P., Tom T."),)


def test_a_column_of_parents_has_their_names_if_another_has_the_addresses() -> None:
    (mia,) = rows_of("Name,Eltern\nMia,p@x.org\n")
    assert mia.guardians == (NamedGuardian("p@x.org"),)
    named = (NamedGuardian("p@x.org", "Pam P."),)
    (mia,) = rows_of("Name,Erziehungsberechtigte/r,E-Mail der Eltern\nMia,Pam P.,p@x.org\n")
    assert mia.guardians == named
    (mia,) = rows_of("Name,家长,邮箱\nMia,Pam P.,p@x.org\n", addresses_of_guardians=True)
    assert mia.guardians == named


@pytest.mark.parametrize(
    ("header", "login_name", "guardians"),
    [
        ("E-Mail 1,E-Mail 2", "", ["a@x.org", "b@x.org"]),
        ("Kennung,Mail 1,Mail 2", "mia", ["a@x.org", "b@x.org"]),
        ("E-Mail 1,Ort", "a@x.org", []),
        ("E-Mail,E-Mail 2", "a@x.org", []),
        ("Courriel 1,E-Mail Mutter", "", ["b@x.org"]),
    ],
)
def test_two_numbered_addresses_are_those_of_parents_if_there_are_no_others(
    header: str, login_name: str, guardians: list[str]
) -> None:
    text = f"Name,{header}\nMia,{'mia,' if 'Kennung' in header else ''}a@x.org,b@x.org\n"
    (row,) = rows_of(text)
    assert [each.login_name for each in row.guardians or ()] == guardians
    assert row.has_login_name == bool(login_name)
    assert login_name in row.login_name
    (row,) = rows_of(text, addresses_of_guardians=True)
    assert len(row.guardians or ()) == (1 if "Ort" in header else 2)


def test_names_of_both_parents_with_one_column_of_addresses_are_in_order() -> None:
    mia, ben = rows_of("Name,Mutter,Vater,E-Mail Eltern\nMia,,Tom,t@x.org\nBen,Pam,Tom,p@x.org\n")
    assert (mia.guardians, ben.guardians) == (
        (NamedGuardian("t@x.org", "Tom"),),
        (NamedGuardian("p@x.org", "Pam"),),
    )


def test_problems_of_guardians_are_those_of_their_cell() -> None:
    text = (
        "name,email,guardian\n"
        "Mia,,pam\n"
        "Ben,,a@x.org b@x.org c@x.org\n"
        "Ida,,\n"
        ",,d@x.org\n"
        "Leo,,no@address@x\n"
        "Lea,,e@x.org\n"
        "LEÄ,lea@x.org,e@x.org f@x.org\n"
    )
    outcome = parse_user_file(text.encode())
    assert codes(outcome) == [
        ("TOO_MANY_GUARDIANS", (3,), "guardian"),
        ("INVALID_EMAIL", (4,), "email"),
        ("INVALID_NAME", (5,), "name"),
        ("INVALID_EMAIL", (6,), "guardian"),
        ("SAME_USER", (8,), "name"),
    ]
    assert codes(parse_user_file(b"guardian\na@x.org\n")) == [("INVALID_NAME", (2,), "name")]


def test_new_guardians_are_created_before_the_children_who_have_them() -> None:
    made = planned(
        "name,guardian,guardian_name,groups\n"
        "Mia,pam@x.org,,2b\nBen,pam@x.org; tom@x.org,Pam P.,1a\nIda,tom@x.org,,\n",
        TOM,
    )
    assert [(each.name, each.groups, each.guardians) for each in made.created] == [
        ("Pam P.", (), ()),
        ("Mia", ("2b",), ("pam@x.org",)),
        ("Ben", ("1a",), ("pam@x.org", "tom@x.org")),
        ("Ida", (), ("tom@x.org",)),
    ]
    assert (made.links_added, made.links_removed, made.unchanged) == (4, 0, 0)
    assert not made.updated


def test_a_guardian_may_have_a_line_of_its_own_below_the_child() -> None:
    made = planned("name,email,guardian,class\nMia,,pam@x.org,2b\nPam P.,pam@x.org,,staff\n")
    assert [(each.name, each.groups, each.guardians) for each in made.created] == [
        ("Pam P.", ("staff",), ()),
        ("Mia", ("2b",), ("pam@x.org",)),
    ]


def test_a_known_child_is_found_by_a_guardian_and_its_name_and_does_not_change() -> None:
    assert planned("name,guardian\nmia munz,PAM@x.org\n", PAM, MIA).created == ()
    same = planned("name,guardian\nMia Münz,pam@x.org\n", PAM, MIA)
    assert (same.is_empty, same.unchanged, same.login_names) == (True, 1, (MIA.login_name,))
    moved = planned("name,guardian\nMia Münz,tom@x.org pam@x.org\n", PAM, TOM, MIA)
    assert [each.guardians for each in moved.updated] == [("tom@x.org", "pam@x.org")]
    assert (moved.links_added, moved.links_removed) == (1, 0)
    # A namesake of another family is another child.
    assert planned("name,guardian\nMia Münz,tom@x.org\n", PAM, TOM, MIA).links_added == 1


def test_a_child_with_a_sign_in_of_its_own_is_still_found_without_it() -> None:
    mia = replace(MIA, login_name="mia@x.org")
    assert planned("name,guardian\nMia Münz,pam@x.org\n", PAM, mia).is_empty
    twice = plan("name,email,guardian\nMia,mia@x.org,\nMia Münz,,pam@x.org\n", PAM, mia)
    assert codes(twice) == [("SAME_USER", (3,), "name")]


def test_a_login_name_for_a_child_without_one_makes_no_second_account() -> None:
    for others in ((), (user("mia@x.org", "Mia Münz"),)):  # nor a second child that looks the same
        outcome = plan("name,email,guardian\nMia Münz,mia@x.org,pam@x.org\n", PAM, MIA, *others)
        assert codes(outcome) == [("CHILD_WITHOUT_LOGIN_NAME", (2,), "name")]


def test_a_cell_of_thousands_of_addresses_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    monkeypatch.setattr(user_file, "normalize_login_name", read.append)
    outcome = parse_user_file(f"name,guardian\nMia,{'pam@ü.org ' * 10_000}\n".encode())
    assert codes(outcome) == [("TOO_MANY_GUARDIANS", (2,), "guardian")]
    assert read == []
    monkeypatch.undo()  # the control: a parent may stand in a cell more than once
    assert rows_of(f"name,guardian\nMia,{'pam@x.org ' * 10}\n")[0].guardians == (
        NamedGuardian("pam@x.org"),
    )


@pytest.mark.parametrize("login_name", ["child def", "mia@x.org"])
def test_a_line_of_two_parents_never_joins_the_accounts_that_each_list_made(
    login_name: str,
) -> None:
    other = user(login_name, "MIA Munz", TOM)
    for guardians in ("pam@x.org tom@x.org", "tom@x.org pam@x.org"):
        both = f"name,guardian\nMia Münz,{guardians}\n"
        assert codes(plan(both, PAM, TOM, MIA, other)) == [("SEVERAL_CHILDREN", (2,), "name")]
        # The control: each parent has the other child, or it has another name, or was erased.
        erased = replace(other, erased_at=NOW)
        for one in (replace(other, guardians=(PAM.id,), name="Max"), erased):
            assert planned(both, PAM, TOM, MIA, one).updated[0].before == MIA
    assert planned("name,guardian\nMia Münz,pam@x.org\n", PAM, TOM, MIA, other).is_empty
    twins = replace(other, guardians=(PAM.id,))  # of an older file
    outcome = plan("name,guardian\nMia Münz,pam@x.org\n", PAM, MIA, twins)
    assert codes(outcome) == [("SEVERAL_CHILDREN", (2,), "name")]


def test_an_empty_cell_removes_guardians_and_a_missing_column_leaves_them() -> None:
    mia = replace(MIA, login_name="mia@x.org")
    removed = planned("email,guardian\nmia@x.org,\n", PAM, mia)
    assert [each.guardians for each in removed.updated] == [()]
    assert (removed.links_added, removed.links_removed) == (0, 1)
    assert planned("email\nmia@x.org\n", PAM, mia).is_empty
    # Also a guardian whose account is not among those that were loaded.
    assert planned("email,guardian\nmia@x.org,\n", mia).links_removed == 1


def test_a_mother_who_teaches_is_linked_and_not_changed() -> None:
    teacher = replace(PAM, role=Role.ORGANIZER)
    made = planned("name,guardian,guardian_name\nMia,pam@x.org,Other name\n", teacher)
    assert [each.name for each in made.created] == ["Mia"]
    assert made.updated == ()


@pytest.mark.parametrize(
    ("text", "users", "expected"),
    [
        ("Ben,,pam", (), "UNKNOWN_GUARDIAN"),
        ("Ben,,pam@x.org", (replace(PAM, erased_at=NOW),), "ERASED"),
        ("Ben,,pam@x.org", (replace(PAM, self_registered=True),), "SELF_REGISTERED_GUARDIAN"),
        ("Ben,,pam@x.org", (replace(PAM, banned_at=NOW),), "BANNED_GUARDIAN"),
        ("Ben,,mia@x.org", (PAM, replace(MIA, login_name="mia@x.org")), "GUARDIAN_IS_DEPENDENT"),
        ("Ben,ben@x.org,ben@x.org", (), "GUARDIAN_IS_DEPENDENT"),
        ("Pam,pam@x.org,tom@x.org", (PAM, MIA), "HAS_DEPENDENTS"),
        ("Ben,ben@x.org,pam@x.org", (user("ben@x.org", role=Role.ADMIN),), "DEPENDENT_NOT_MEMBER"),
    ],
)
def test_a_guardian_who_cannot_be_one_is_a_problem_of_the_line(
    text: str, users: Sequence[User], expected: str
) -> None:
    outcome = plan(f"name,email,guardian\nUla,ula@x.org,\n{text}\n", *users)
    assert (expected, (3,), "guardian") in codes(outcome)


def test_a_guardian_who_was_banned_since_stays_one() -> None:
    banned = replace(PAM, banned_at=NOW)
    assert planned("name,guardian\nMia Münz,pam@x.org\n", banned, MIA).is_empty
    moved = planned("name,guardian\nMia Münz,pam@x.org tom@x.org\n", banned, TOM, MIA)
    assert moved.links_added == 1


def test_a_line_can_make_its_guardian_a_dependent_no_more() -> None:
    mia = replace(MIA, login_name="mia@x.org")
    made = planned("name,email,guardian\nMia,mia@x.org,\nBen,,mia@x.org\n", PAM, mia)
    assert (made.links_added, made.links_removed) == (1, 1)


def test_who_registered_the_address_of_a_parent_gets_no_child() -> None:
    registered = replace(PAM, self_registered=True)
    text = "name,email,guardian\nPam,pam@x.org,\nBen,,pam@x.org\n"
    assert codes(plan(text, registered))[0][0] == "SELF_REGISTERED_GUARDIAN"
    for choice in Choice:
        made = planned(text, registered, choices=Choices({2: choice}))
        assert made.links_added == 1


def test_a_guardian_has_at_most_20_dependents() -> None:
    children = [user(f"child {n}", f"Child {n}", PAM) for n in range(MAX_DEPENDENTS)]
    outcome = plan("name,guardian\nBen,pam@x.org\n", PAM, *children)
    assert codes(outcome) == [("TOO_MANY_DEPENDENTS", (2,), "guardian")]
    assert planned("name,guardian\nBen,pam@x.org\n", PAM, *children[1:]).links_added == 1
    # One leaves, one comes.
    text = "name,guardian\nChild 0,pam@x.org tom@x.org\nBen,pam@x.org\n"
    moved = text.replace("pam@x.org tom", "tom")
    first = replace(children[0], guardians=(PAM.id, TOM.id))
    assert codes(plan(text, PAM, TOM, first, *children[1:]))[0][0] == "TOO_MANY_DEPENDENTS"
    assert planned(moved, PAM, TOM, first, *children[1:]).links_removed == 1


def test_the_addresses_of_a_file_may_be_those_of_parents() -> None:
    text = "Name;Vorname;E-Mail;Klasse\nMünz;Mia;pam@x.org;2b\nMünz;Ben;pam@x.org;1a\n"
    assert codes(parse_user_file(text.encode())) == [("SAME_USER", (3,), "email")]
    made = planned(text, addresses_of_guardians=True)
    assert [(each.name, each.guardians) for each in made.created] == [
        ("pam", ()),
        ("Mia Münz", ("pam@x.org",)),
        ("Ben Münz", ("pam@x.org",)),
    ]


def test_guardians_whom_the_file_of_a_sync_names_are_not_gone() -> None:
    rows = rows_of("name,guardian\nMia Münz,pam@x.org\n")
    users = {each.login_name: each for each in (PAM, TOM, MIA)}
    ids = frozenset(each.id for each in users.values())

    def sync(managed: frozenset[UserId], banned: frozenset[UserId]) -> ImportPlan:
        made = plan_sync(rows, users, managed, banned, choices=NO_CHOICES, bans_gone=True)
        assert isinstance(made, ImportPlan)
        return made

    membership = sync(ids, frozenset()).membership
    assert membership is not None
    assert (membership.named, membership.gone) == ((), (TOM,))
    # An account that a sync did not create is linked, and not managed from now on.
    membership = sync(frozenset({MIA.id}), frozenset()).membership
    assert membership is not None
    assert (membership.named, membership.gone) == ((), ())
    # The sync lifts its own ban of a guardian, who then acts for another child, too.
    banned = users[PAM.login_name] = replace(PAM, banned_at=NOW)
    rows += rows_of("name,guardian\nBen Münz,pam@x.org\n")
    again = sync(frozenset({MIA.id}), frozenset({PAM.id}))
    assert again.links_added == 1
    membership = again.membership
    assert membership is not None
    assert (membership.named, membership.returned) == ((banned,), (banned,))
    users[PAM.login_name] = PAM
    # A child that the file no longer names is gone as all are, also without a login name.
    rows = rows_of("name,guardian\nBen Münz,pam@x.org\n")
    membership = sync(ids, frozenset()).membership
    assert membership is not None
    assert membership.gone == (MIA, TOM)


ADA = Resource("Ms. Ada", ResourceKind.STAFF)
BEN = Resource("Berg, Ben", ResourceKind.STAFF, TOM.id)
CHO, DAN = (Resource(each, ResourceKind.STAFF, PAM.id) for each in ("Cho", "Dan"))
HALL = Resource("Hall", ResourceKind.ROOM)


@pytest.mark.parametrize("header", ["leads", "leitet", "dirige", "imparte", "负责", "負責"])
def test_a_column_says_which_resources_a_user_leads(header: str) -> None:
    text = f'email;{header}\npam@x.org;"ms. ada, cho; Berg, Ben"\n'
    made = planned(text, PAM, resources=(ADA, BEN, CHO, DAN))
    assert [(each.resource, each.login_name) for each in made.leaders] == [
        (ADA, "pam@x.org"),
        (BEN, "pam@x.org"),
        (DAN, None),
    ]
    assert (made.is_empty, made.unchanged) == (False, 1)


def test_a_line_takes_a_resource_from_another_leader() -> None:
    text = "email;leads\npam@x.org;Berg, Ben\ntom@x.org;\n"
    assert planned(text, PAM, TOM, resources=(BEN,)).leaders == (LeaderChange(BEN, "pam@x.org"),)
    assert planned("email;leads\ntom@x.org;Berg, Ben\n", TOM, resources=(BEN,)).is_empty


def test_a_file_makes_nobody_a_leader_who_is_banned() -> None:
    banned = replace(PAM, banned_at=NOW)
    outcome = plan("email,leads\npam@x.org,Ms. Ada\n", banned, resources=(ADA, CHO))
    assert codes(outcome) == [("USER_IS_BANNED", (2,), "leads")]
    assert planned("email,leads\npam@x.org,cho\n", banned, resources=(ADA, CHO)).is_empty


def test_a_resource_that_nobody_can_lead_is_a_problem_of_the_line() -> None:
    leads = ("Ms. Adda", "Nobody", "Hall", "Ms. Ada", "ms. ada")
    text = "\n".join(("email,leads", *(f"u{n}@x.org,{each}" for n, each in enumerate(leads))))
    outcome = plan(text, resources=(ADA, HALL))
    assert codes(outcome) == [
        ("SIMILAR_RESOURCE", (2,), "leads"),
        ("UNKNOWN_RESOURCE", (3,), "leads"),
        ("LEADER_NOT_STAFF", (4,), "leads"),
        ("SAME_RESOURCE", (6,), "leads"),
    ]
    assert isinstance(outcome, InvalidFile)
    assert dict(outcome.problems[0].values) == {"name": "Ms. Adda", "similar": "Ms. Ada"}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Herr Neu", None),
        ("Herr Neuman", "Frau Neumann"),
        ("Quast", "Herr Quast"),
        ("Hr. Quast", "Herr Quast"),
        ("Dr. Ida Berk", "Dr. Ida Berg"),
        ("李老师", None),
        ("欧阳方老师", "欧阳芳老师"),
    ],
)
def test_the_nearest_name_is_near_in_more_than_the_title(name: str, nearest: str | None) -> None:
    known = ("Herr Quast", "Herr Nolte", "Frau Neumann", "Dr. Ida Berg", "欧阳芳老师")
    (problem,) = unknown_resource("leads", name, known).problems
    assert problem.message.values.get("similar") == nearest
