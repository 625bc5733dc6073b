"""A file of people is read whole or not at all, and every line that is wrong is named."""

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.users.import_file import (
    MAX_IMPORTED_USERS,
    MAX_PROBLEMS,
    InvalidUserFile,
    LineProblem,
    UserRow,
    parse_user_file,
)


def address_of(text: str) -> str | None:
    """Stands for the check that a library makes: what it is does not matter here."""
    return text.lower() if "@" in text else None


def read(text: str) -> tuple[UserRow, ...] | InvalidUserFile:
    return parse_user_file(text.encode(), address_of)


def problems(text: str) -> list[tuple[int, str | None]]:
    """Where a file is wrong."""
    found = read(text)
    assert isinstance(found, InvalidUserFile)
    assert found.count == len(found.problems)
    assert all(problem.message for problem in found.problems)
    return [(problem.line, problem.column) for problem in found.problems]


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
def test_a_file_is_read_however_a_program_wrote_it(text: str) -> None:
    assert read(text) == (ADA,)


def test_a_column_that_is_missing_says_nothing_of_anybody() -> None:
    assert read("email\nada@x.org\n") == (UserRow(2, "ada@x.org", None, None),)
    assert read("email,groups\nada@x.org,\n") == (UserRow(2, "ada@x.org", None, ()),)


def test_a_file_of_nobody_is_no_mistake() -> None:
    assert read("email,name,groups\n") == ()


def test_a_name_or_group_written_in_two_ways_is_one() -> None:
    rows = read("email,name,groups\na@x.org,Rene\u0301,e\u0301;\u00e9\n")
    assert rows == (UserRow(2, "a@x.org", "Ren\u00e9", ("\u00e9",)),)


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "ada@x.org,Ada\n", "name\nAda\n"])
def test_a_file_without_its_header_is_told_what_is_missing(text: str) -> None:
    assert (1, "email") in problems(text)


def test_columns_that_nobody_knows_or_that_come_twice_are_named() -> None:
    assert problems("email,phone,name,name\na@x.org,1,A,B\n") == [(1, "phone"), (1, "name")]
    assert problems("email,,name\na@x.org,,A\n") == [(1, "")]
    assert problems(f"email,{'x' * 900}\n") == [(1, "x" * 40)]


def test_an_import_gives_no_roles() -> None:
    found = read("email,role\nada@x.org,admin\n")
    assert isinstance(found, InvalidUserFile)
    (problem,) = found.problems
    assert (problem.line, problem.column) == (1, "role")
    assert "no roles" in problem.message


def test_every_mistake_is_named_by_its_line() -> None:
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
    assert problems(text) == [
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


def test_a_quote_that_is_not_closed_is_found_in_the_line_where_it_opens() -> None:
    assert problems('email,name\na@x.org,"Ada\nb@x.org,Ben\n') == [(2, None)]
    assert problems('email,name\na@x.org,"A" da\nb,Ben\n') == [(2, None), (3, "email")]


def test_a_cell_of_any_length_is_refused_and_not_choked_on() -> None:
    assert problems(f"email,name\na@x.org,{'a' * 200_000}\nnobody,Ben\n") == [
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
def test_a_file_in_another_encoding_is_told_so(body: bytes, line: int) -> None:
    found = parse_user_file(body, address_of)
    assert isinstance(found, InvalidUserFile)
    assert [(problem.line, problem.column) for problem in found.problems] == [(line, None)]
    assert "UTF-8" in found.problems[0].message


def test_of_many_mistakes_the_first_are_named_and_all_are_counted() -> None:
    found = read("email\n" + "nobody\n" * 1_000)
    assert isinstance(found, InvalidUserFile)
    assert len(found.problems) == MAX_PROBLEMS
    assert found.count == 1_000


def test_more_people_than_can_be_written_together_are_refused() -> None:
    text = "email\n" + "".join(f"{number}@x.org\n" for number in range(MAX_IMPORTED_USERS))
    rows = read(text)
    assert isinstance(rows, tuple)
    assert len(rows) == MAX_IMPORTED_USERS
    assert problems(text + "one-more@x.org\nanother@x.org\n") == [(MAX_IMPORTED_USERS + 2, None)]


def well_formed(found: tuple[UserRow, ...] | InvalidUserFile) -> None:
    """Rows with each address once, or problems that name a line."""
    if isinstance(found, InvalidUserFile):
        assert found.count >= len(found.problems) > 0
        assert all(isinstance(p, LineProblem) and p.line >= 1 for p in found.problems)
    else:
        assert len({row.email for row in found}) == len(found)


@given(st.binary())
def test_no_bytes_make_it_raise(body: bytes) -> None:
    well_formed(parse_user_file(body, address_of))


# Text that comes near to being a file of people, which bytes at random never do.
BITS = st.sampled_from(
    [*",;\"'\r\n\t\0 ", "\ufeff", "\u2028", "email", "name", "groups", "role", "a@x", "Ada", "5a"]
)


@given(st.lists(BITS).map("".join))
def test_no_text_makes_it_raise(text: str) -> None:
    well_formed(read(text))
    well_formed(read("email,name,groups\n" + text))


PLAIN = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)
GROUP = PLAIN.filter(lambda text: not set(text) & set(",;*"))


@given(
    st.lists(st.tuples(PLAIN, st.lists(GROUP, max_size=5)), max_size=10),
    st.sampled_from([",", ";"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_a_program_writes_is_what_is_read(
    people: list[tuple[str, list[str]]], delimiter: str, end: str, quoted: bool
) -> None:
    written = StringIO(newline="")
    writer = csv.writer(
        written, delimiter=delimiter, lineterminator=end, quoting=1 if quoted else 0
    )
    writer.writerow(["email", "name", "groups"])
    for number, (name, groups) in enumerate(people):
        writer.writerow([f"{number}@x.org", name, ";".join(groups)])
    rows = read(written.getvalue())
    assert isinstance(rows, tuple)
    assert [row.email for row in rows] == [f"{number}@x.org" for number in range(len(people))]
    again = [row for row in rows if row.name is not None and row.groups is not None]
    assert len(again) == len(people)
