"""Parsing a file of users: all rows, or every problem with its line and column."""

import csv
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.shared.tables.file_problems import (
    MAX_PROBLEMS,
    MAX_SHOWN_LINES,
    InvalidFile,
    LineProblem,
)
from slotlock.domain.shared.text import is_blank
from slotlock.domain.user_files.plan import ImportPlan, plan_import
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import (
    MAX_IMPORTED_USERS,
    UserFile,
    UserRow,
    parse_user_file,
    split_list_name,
)
from slotlock.domain.users.identity import Identity, parse_subject
from slotlock.domain.users.user import Role, User, UserId
from tests.support.clients.user_files import CLAIM_ALL
from tests.support.domain.builders import NOW


def parse_bytes(body: bytes) -> tuple[UserRow, ...] | InvalidFile:
    file = parse_user_file(body)
    return file if isinstance(file, InvalidFile) else file.rows


def parse(text: str) -> tuple[UserRow, ...] | InvalidFile:
    return parse_bytes(text.encode())


def problem_cells(text: str) -> list[tuple[int, str | None]]:
    """Return the line and column of each problem."""
    outcome = parse(text)
    assert isinstance(outcome, InvalidFile)
    assert outcome.count == sum(problem.count for problem in outcome.problems)
    assert all(problem.message for problem in outcome.problems)
    return sorted(
        ((line, problem.column) for problem in outcome.problems for line in problem.lines),
        key=lambda cell: cell[0],
    )


ADA = UserRow(2, "ada@x.org", "Ada", ("5a", "choir"))


@pytest.mark.parametrize(
    "text",
    [
        "email,name,groups\nada@x.org,Ada,5a;choir\n",
        "email,name,groups\r\nada@x.org,Ada,5a;choir\r\n",
        "email,name,groups\rada@x.org,Ada,5a;choir\r",
        "\ufeffemail,name,groups\nada@x.org,Ada,5a;choir",
        "groups,email,name\nchoir;5a,ada@x.org,Ada\n",
        " Email , NAME,Groups\n ADA@x.org , Ada , 5a ; choir ;; 5a \n",
        'email,name,groups\n"ada@x.org","Ada","5a;choir"\n',
        'email,name,groups\n"ada@x.org","\u2028Ada","5a\u2028choir"\n',
        'email;name;groups\nada@x.org;Ada;"5a;choir"\n',
        'email;name;groups;;\nada@x.org;Ada;"5a;choir";;\n;;;;\n',
        "email,name,groups\nada@x.org,Ada,5a;choir,,\n\n  \n,,\n",
    ],
)
def test_files_of_different_programs_give_the_same_row(text: str) -> None:
    assert parse(text) == (ADA,)


def test_fields_of_missing_columns_are_none() -> None:
    assert parse("email\nada@x.org\n") == (UserRow(2, "ada@x.org", None, None),)
    assert parse("email,groups\nada@x.org,\n") == (UserRow(2, "ada@x.org", None, ()),)


def test_a_file_without_users_is_valid() -> None:
    assert parse("email,name,groups\n") == ()


def test_names_and_groups_are_normalized() -> None:
    rows = parse("email,name,groups\na@x.org,Rene\u0301,e\u0301;\u00e9\n")
    assert rows == (UserRow(2, "a@x.org", "Ren\u00e9", ("\u00e9",)),)


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "ada@x.org,Ada\n", "name\nAda\n"])
def test_a_file_without_a_header_names_the_missing_column(text: str) -> None:
    assert (1, "email") in problem_cells(text)


def test_unknown_columns_are_named_and_ignored() -> None:
    text = f"Straße,email,,street,name,{'x' * 900}\n1,a@x.org,2,3,A,4\n"
    rows = (UserRow(2, "a@x.org", "A", None),)
    assert parse_user_file(text.encode()) == UserFile(rows, ("Straße", "street", "x" * 40))


def test_of_several_numbers_the_first_is_stored() -> None:
    rows = parse("email;Telefon;Handy\na@x.org;;0170 1234\nb@x.org;030 12;0170 99\nc@x.org;;\n")
    assert not isinstance(rows, InvalidFile)
    assert [row.phone for row in rows] == ["0170 1234", "030 12", None]
    assert problem_cells("email;Telefon\na@x.org;mum\nb@x.org;030 12\n") == [(2, "phone")]


def test_repeated_columns_are_named() -> None:
    assert problem_cells("email,name,name\na@x.org,A,B\n") == [(1, "name")]


def test_an_import_cannot_set_roles() -> None:
    outcome = parse("email,role\nada@x.org,admin\n")
    assert isinstance(outcome, InvalidFile)
    (problem,) = outcome.problems
    assert (problem.lines, problem.column) == ((1,), "role")
    assert "cannot set roles" in problem.message


def test_every_problem_names_its_line_and_column() -> None:
    text = (
        "email,name,groups\n"
        "ada@x.org,Ada,\n"
        "nonsense,Ben,\n"
        "\n"
        'cleo@x.org,"Cleo\nof two lines",a\n'
        "dora@x.org,,\n"
        f"eve@x.org,{'e' * 101},{'g' * 51}\n"
        "ADA@x.org,Ada again,\n"
        'fred@x.org,Fred,"a*"\n'
        "gil@x.org,Gil\n"
        "hal@x.org,Hal,a,b\n"
    )
    assert problem_cells(text) == [
        (3, "email"),
        (5, "name"),
        (7, "name"),
        (8, "name"),
        (8, "groups"),
        (9, "email"),
        (10, "groups"),
        (11, None),
        (12, None),
    ]


def test_an_unclosed_quote_is_reported_in_the_line_where_it_opens() -> None:
    assert problem_cells('email,name\na@x.org,"Ada\nb@x.org,Ben\n') == [(2, None)]
    assert problem_cells('email,name\na@x.org,"A" da\nb,Ben\n') == [(2, None), (3, "email")]


def test_a_very_long_cell_is_a_problem_of_its_line_only() -> None:
    assert problem_cells(f"email,name\na@x.org,{'a' * 200_000}\nnobody,Ben\n") == [
        (2, None),
        (3, "email"),
    ]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Nachname;Vorname;E-Mail;Klasse\nMüller;Zoé;a@x.org;7a, chor\n", "cp1252"),
        ("Name;Vorname;E-Mail-Adresse;Klasse;Kurs\nMüller;Zoé;a@x.org;7a;chor\n", "cp1252"),
        ("Nom;Prénom;Courriel;Classe\nMüller;Zoé;a@x.org;7a|chor\n", "cp1252"),
        ("Apellidos;Nombre;Correo electrónico;Grupo\nMüller;Zoé;a@x.org;7a,chor\n", "cp1252"),
        ("CORREO ELECTRONICO\tNombre y apellidos\tClase\na@x.org\tZoé Müller\t7a;chor\n", "utf-16"),
        ("姓名,电子邮件,班级\nZoé Müller,a@x.org,7a、chor\n", "utf-8"),
        ("First Name,last-name,E_MAIL,groups\nZoé,Müller,a@x.org,7a;chor\n", "utf-8-sig"),
        ('name,first name,last name,email,class\nZoé Müller,Z,M,a@x.org,"7a\nchor"\n', "utf-16-be"),
    ],
)
def test_the_files_of_schools_are_read_as_they_come(text: str, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    rows = parse_bytes(mark + text.encode(encoding))
    family_name = None if "Zoé Müller" in text else "Müller"
    groups = ("7a", "chor")
    assert rows == (UserRow(2, "a@x.org", "Zoé Müller", groups, family_name=family_name),)


def test_chinese_names_are_joined_without_a_blank_and_a_slash_separates_no_groups() -> None:
    text = "姓,名,用户名,班级\n王,小明, S-01 ,2025/26\nSmith,John,s02,\n李,,s03,\n"
    for encoding in ("utf-8", "gb18030"):
        assert parse_bytes(text.encode(encoding)) == (
            UserRow(2, "s-01", "王小明", ("2025/26",), family_name="王"),
            UserRow(3, "s02", "John Smith", (), family_name="Smith"),
            UserRow(4, "s03", "李", (), family_name="李"),
        )


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Winter, Ute", ("Ute Winter", "Winter")),
        ("王\uff0c伟", ("王伟", "王")),
        ("Ute Winter", ("Ute Winter", None)),
        ("Winter,", ("Winter,", None)),
        ("Kim, Lee, Ada", ("Kim, Lee, Ada", None)),
    ],
)
def test_a_name_as_lists_show_it_has_a_family_name(
    typed: str, expected: tuple[str, str | None]
) -> None:
    assert split_list_name(typed) == expected


def test_an_account_has_an_address_or_a_user_name() -> None:
    text = "email,username\na@x.org,\n,Anna\n,b@x.org\nc@x.org,C@x.org\n"
    rows = parse(text)
    assert isinstance(rows, tuple)
    assert [row.login_name for row in rows] == ["a@x.org", "anna", "b@x.org", "c@x.org"]
    text = "email,username\na@x.org,anna\n,\n,an na\nanna,\n,anna\n,ANNA\n"
    assert problem_cells(text) == [
        (2, "username"),
        (4, "username"),
        (5, "email"),
        (7, "username"),
    ]


def test_a_line_with_the_user_of_another_line_names_that_one() -> None:
    invalid = parse("email\na@x.org\nb@x.org\nA@x.org\nb@x.org\n a@X.org\n")
    assert isinstance(invalid, InvalidFile)
    assert [(each.lines, each.values, each.message) for each in invalid.problems] == [
        ((4, 6), {"line": 2}, "Line 2 has the same user."),
        ((5,), {"line": 3}, "Line 3 has the same user."),
    ]


def test_a_subject_is_as_the_file_has_it_and_a_blank_cell_has_none() -> None:
    rows = parse("Subject;E-Mail\n school:aB:1 ;a@x.org\n ;b@x.org\n")
    assert isinstance(rows, tuple)
    assert [row.subject for row in rows] == ["school:aB:1", None]


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("7", "s", ("s", "7")),
        ("s:7", "s", ("s", "7")),
        ("s:s:7", "s", ("s", "s:7")),
        ("t:7", "st", ("t", "7")),
        ("7", "st", None),
        ("7", "", None),
        ("u:7", "s", None),
        ("S:7", "s", None),
        ("s:", "s", None),
        ("s: 7", "s", None),
        ("s:é", "s", None),
        ("1.0477E+20", "s", None),
        ("x" * 255, "s", ("s", "x" * 255)),
        ("x" * 256, "s", None),
    ],
)
def test_a_subject_names_its_provider_unless_there_is_only_one(
    text: str, ids: str, expected: tuple[str, str] | None
) -> None:
    issuers = {each: f"https://{each}.test" for each in ids}
    identity = Identity(issuers[expected[0]], expected[1]) if expected else None
    assert parse_subject(text, issuers) == identity


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("email,name\nada@x.org,Ada\ni@x.org,Иван\n".encode("cp1251"), 3),
        ("email,name\nada@x.org,王小明\n".encode("gb18030"), 2),
        ("email,name\nada@x.org,Rene\nz@x.org,Zoé\n".encode("mac-roman"), 3),
        ("email,name\nada@x.org,René\n".encode() + b"z@x.org,Zo\xeb\n", 3),
        (b"email\n\x81", 2),
        (b"\xff\xfee", 1),
    ],
)
def test_a_file_in_another_encoding_is_invalid(body: bytes, line: int) -> None:
    outcome = parse_bytes(body)
    assert isinstance(outcome, InvalidFile)
    assert [(problem.lines, problem.column) for problem in outcome.problems] == [((line,), None)]
    assert "UTF-8" in outcome.problems[0].message


def test_equal_problems_are_one_with_the_first_lines_and_their_number() -> None:
    outcome = parse("email,name\n" + "nobody,Ben\na@x.org,\n" * 1_000)
    assert isinstance(outcome, InvalidFile)
    assert [(each.column, each.lines[:2], each.count) for each in outcome.problems] == [
        ("email", (2, 4), 1_000),
        ("name", (3, 5), 1_000),
        ("email", (5, 7), 999),
    ]
    assert {len(problem.lines) for problem in outcome.problems} == {MAX_SHOWN_LINES}
    assert outcome.count == 2_999


def test_a_problem_has_a_code_and_the_name_that_the_file_gives_its_column() -> None:
    outcome = parse(f"Nachname;Vorname;E-Mail;Klasse;Kurs\n{'x' * 150};Y;nobody;7a*;\nA;B\n")
    assert isinstance(outcome, InvalidFile)
    assert [(each.code, each.header, dict(each.values)) for each in outcome.problems] == [
        ("INVALID_EMAIL", "E-Mail", {}),
        ("INVALID_NAME", "Nachname, Vorname", {"maximum": 100}),
        ("INVALID_GROUPS", "Klasse, Kurs", {"maximum": 20, "length": 50}),
        ("WRONG_CELL_COUNT", None, {"cells": 2, "expected": 5}),
    ]
    outcome = parse("Name;Telefon\nA;1\n")
    assert isinstance(outcome, InvalidFile)
    assert [(each.code, each.header) for each in outcome.problems] == [("NO_LOGIN_COLUMN", None)]


def test_at_most_100_different_problems_are_named() -> None:
    outcome = parse("email,name\n" + "".join(f"a{',x' * n}\n" for n in range(2, 153)))
    assert isinstance(outcome, InvalidFile)
    assert (len(outcome.problems), outcome.count) == (MAX_PROBLEMS, 151)


def test_a_file_with_too_many_users_is_invalid() -> None:
    text = "email\n" + "".join(f"{number}@x.org\n" for number in range(MAX_IMPORTED_USERS))
    rows = parse(text)
    assert isinstance(rows, tuple)
    assert len(rows) == MAX_IMPORTED_USERS
    assert problem_cells(text + "one-more@x.org\nanother@x.org\n") == [
        (MAX_IMPORTED_USERS + 2, None)
    ]


def assert_well_formed(outcome: tuple[UserRow, ...] | InvalidFile) -> None:
    """Assert that the rows have unique addresses, or that the problems name lines."""
    if isinstance(outcome, InvalidFile):
        assert outcome.count >= len(outcome.problems) > 0
        assert all(isinstance(p, LineProblem) and min(p.lines) >= 1 for p in outcome.problems)
    else:
        assert len({row.login_name for row in outcome}) == len(outcome)


@given(st.binary())
def test_any_bytes_give_rows_or_problems(body: bytes) -> None:
    assert_well_formed(parse_bytes(body))


# Fragments of user files: random bytes almost never resemble one.
FRAGMENTS = st.sampled_from(
    [
        *",;\"'\r\n\t\0 ",
        "\ufeff",
        "\u2028",
        "email",
        "name",
        "groups",
        "role",
        "a@x",
        "Ada",
        "5a",
        "姓",
        "Nom",
        "login",
    ]
)


@given(st.lists(FRAGMENTS).map("".join))
def test_any_text_gives_rows_or_problems(text: str) -> None:
    assert_well_formed(parse(text))
    assert_well_formed(parse("email,name,groups\n" + text))


VISIBLE_TEXT = st.text(
    st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20
).filter(lambda text: not is_blank(text))
GROUP = VISIBLE_TEXT.filter(lambda text: not set(text) & set(",;*"))


@given(
    st.lists(st.tuples(VISIBLE_TEXT, st.lists(GROUP, max_size=5)), max_size=10),
    st.sampled_from([",", ";"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_rows_written_by_the_csv_module_are_parsed_back(
    users: list[tuple[str, list[str]]], delimiter: str, line_end: str, quoted: bool
) -> None:
    written = StringIO(newline="")
    writer = csv.writer(
        written, delimiter=delimiter, lineterminator=line_end, quoting=1 if quoted else 0
    )
    writer.writerow(["email", "name", "groups"])
    for number, (name, groups) in enumerate(users):
        writer.writerow([f"{number}@x.org", name, ";".join(groups)])
    rows = parse(written.getvalue())
    assert isinstance(rows, tuple)
    assert [row.login_name for row in rows] == [f"{number}@x.org" for number in range(len(users))]
    assert all(row.name is not None and row.groups is not None for row in rows)


def account(**values: object) -> User:
    """Return the account of Ada."""
    user = User(UserId("a"), "Ada", ADA.login_name, Role.MEMBER, NOW, ("5a", "choir"))
    return replace(user, **values)  # type: ignore[arg-type]


def test_an_import_names_the_line_of_an_erased_user_instead_of_changing_it() -> None:
    erased = account(name="Erased user", erased_at=NOW)
    plan = plan_import([ADA], {ADA.login_name: erased})
    assert isinstance(plan, InvalidFile)
    assert [problem.code for problem in plan.problems] == [ImportProblem.ERASED]


def test_a_choice_is_only_for_accounts_that_somebody_registered() -> None:
    for is_registered in (True, False):
        known = {ADA.login_name: account(name="A", self_registered=is_registered)}
        plan = plan_import([ADA], known, choices=CLAIM_ALL)
        assert isinstance(plan, ImportPlan)
        assert [update.is_claim for update in plan.updated] == [is_registered]
