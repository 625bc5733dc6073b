"""What would break a client does not get into schema.graphql unasked."""

from pathlib import Path

import pytest

from conformance import schema

OLD = """\
enum Kind { MEETING COURSE }
type Slot { id: ID! title: String! place: String }
type Query { slot(id: ID!): Slot kinds: [Kind!]! }
"""
BREAKING = {
    "a field that is gone": (" place: String", ""),
    "a field of another type": ("title: String!", "title: Int!"),
    "a field that may be null from now on": ("title: String!", "title: String"),
    "a value that is gone": (" COURSE", ""),
    "an argument that is needed from now on": ("(id: ID!)", "(id: ID!, kind: Kind!)"),
    "a type that is gone": ("kinds: [Kind!]!", "kinds: [String!]!"),
}


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    file = tmp_path / "schema.graphql"
    file.write_text(OLD)
    return file


@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING)
def test_what_breaks_clients_is_not_written(
    committed: Path, change: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace(*change)
    assert new != OLD
    assert schema.write_schema(committed, new, breaking=False) == 1
    assert committed.read_text() == OLD
    assert "breaking: " in capsys.readouterr().out


def test_what_breaks_clients_is_written_when_told_to_and_is_named(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace(" place: String", "")
    assert schema.write_schema(committed, new, breaking=True) == 0
    assert committed.read_text() == new
    assert "breaking: Field Slot.place was removed." in capsys.readouterr().out


def test_what_may_surprise_clients_is_named_and_written(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace("COURSE", "COURSE RESOURCE")
    assert schema.write_schema(committed, new, breaking=False) == 0
    assert committed.read_text() == new
    assert "dangerous: " in capsys.readouterr().out


def test_what_is_only_added_or_deprecated_is_written_without_a_word(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace("place: String", 'place: String @deprecated(reason: "room") room: String')
    assert schema.write_schema(committed, new, breaking=False) == 0
    assert committed.read_text() == new
    assert capsys.readouterr().out == ""


def test_there_is_no_comparing_with_a_commit_that_is_not_there() -> None:
    with pytest.raises(schema.NoBaseError):
        schema.committed_schema("no-such-commit")


def test_the_code_breaks_no_client_of_the_committed_schema() -> None:
    assert (
        schema.compare_schemas(schema.SCHEMA_FILE.read_text(), schema.current_schema()).breaking
        == ()
    )
