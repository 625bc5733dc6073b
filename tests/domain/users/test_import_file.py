"""Parsing a file of users: all rows, or every problem with its line and column."""

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.shared.text import is_blank
from slotlock.domain.users.import_file import (
    MAX_IMPORTED_USERS,
    MAX_PROBLEMS,
    InvalidUserFile,
    LineProblem,
    UserRow,
    parse_user_file,
)


def parse(text: str) -> tuple[UserRow, ...] | InvalidUserFile:
    return parse_user_file(text.encode())


def problem_cells(text: str) -> list[tuple[int, str | None]]:
    """Return the line and column of each problem."""
    outcome = parse(text)
    assert isinstance(outcome, InvalidUserFile)
    assert outcome.count == len(outcome.problems)
    assert all(problem.message for problem in outcome.problems)
    return [(problem.line, problem.column) for problem in outcome.problems]


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


def test_unknown_and_repeated_columns_are_named() -> None:
    assert problem_cells("email,phone,name,name\na@x.org,1,A,B\n") == [(1, "phone"), (1, "name")]
    assert problem_cells("email,,name\na@x.org,,A\n") == [(1, "")]
    assert problem_cells(f"email,{'x' * 900}\n") == [(1, "x" * 40)]


def test_an_import_cannot_set_roles() -> None:
    outcome = parse("email,role\nada@x.org,admin\n")
    assert isinstance(outcome, InvalidUserFile)
    (problem,) = outcome.problems
    assert (problem.line, problem.column) == (1, "role")
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
        'fred@x.org,Fred,"a,b"\n'
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
    ("body", "line"),
    [
        ("email,name\nada@x.org,Ada\nrene@x.org,Ren\u00e9\n".encode("latin-1"), 3),
        ("email,name\nada@x.org,Ada\n".encode("utf-16"), 1),
        (b"email\n\xff", 2),
    ],
)
def test_a_file_in_another_encoding_is_invalid(body: bytes, line: int) -> None:
    outcome = parse_user_file(body)
    assert isinstance(outcome, InvalidUserFile)
    assert [(problem.line, problem.column) for problem in outcome.problems] == [(line, None)]
    assert "UTF-8" in outcome.problems[0].message


def test_the_first_problems_are_named_and_all_are_counted() -> None:
    outcome = parse("email\n" + "nobody\n" * 1_000)
    assert isinstance(outcome, InvalidUserFile)
    assert len(outcome.problems) == MAX_PROBLEMS
    assert outcome.count == 1_000


def test_a_file_with_too_many_users_is_invalid() -> None:
    text = "email\n" + "".join(f"{number}@x.org\n" for number in range(MAX_IMPORTED_USERS))
    rows = parse(text)
    assert isinstance(rows, tuple)
    assert len(rows) == MAX_IMPORTED_USERS
    assert problem_cells(text + "one-more@x.org\nanother@x.org\n") == [
        (MAX_IMPORTED_USERS + 2, None)
    ]


def assert_well_formed(outcome: tuple[UserRow, ...] | InvalidUserFile) -> None:
    """Assert that the rows have unique addresses, or that the problems name lines."""
    if isinstance(outcome, InvalidUserFile):
        assert outcome.count >= len(outcome.problems) > 0
        assert all(isinstance(p, LineProblem) and p.line >= 1 for p in outcome.problems)
    else:
        assert len({row.email for row in outcome}) == len(outcome)


@given(st.binary())
def test_any_bytes_give_rows_or_problems(body: bytes) -> None:
    assert_well_formed(parse_user_file(body))


# Fragments of user files: random bytes almost never resemble one.
FRAGMENTS = st.sampled_from(
    [*",;\"'\r\n\t\0 ", "\ufeff", "\u2028", "email", "name", "groups", "role", "a@x", "Ada", "5a"]
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
    assert [row.email for row in rows] == [f"{number}@x.org" for number in range(len(users))]
    assert all(row.name is not None and row.groups is not None for row in rows)
