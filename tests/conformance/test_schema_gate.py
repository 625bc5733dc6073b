"""A change that breaks clients is written to schema.graphql only with an option."""

from pathlib import Path

import pytest

from conformance import schema

OLD = """\
enum Kind { MEETING COURSE }
type Slot { id: ID! title: String! place: String }
type Query { slot(id: ID!): Slot kinds: [Kind!]! }
"""
BREAKING = {
    "a removed field": (" place: String", ""),
    "a changed type": ("title: String!", "title: Int!"),
    "a field that becomes nullable": ("title: String!", "title: String"),
    "a removed enum value": (" COURSE", ""),
    "a new required argument": ("(id: ID!)", "(id: ID!, kind: Kind!)"),
    "a removed type": ("kinds: [Kind!]!", "kinds: [String!]!"),
}


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """Return a schema file with the old schema."""
    file = tmp_path / "schema.graphql"
    file.write_text(OLD)
    return file


@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING)
def test_a_breaking_change_is_not_written(
    committed: Path, change: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace(*change)
    assert new != OLD
    assert schema.write_schema(committed, new, breaking=False) == 1
    assert committed.read_text() == OLD
    assert "breaking: " in capsys.readouterr().out


def test_a_breaking_change_is_written_with_the_option_and_printed(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace(" place: String", "")
    assert schema.write_schema(committed, new, breaking=True) == 0
    assert committed.read_text() == new
    assert "breaking: Field Slot.place was removed." in capsys.readouterr().out


def test_a_dangerous_change_is_written_and_printed(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace("COURSE", "COURSE RESOURCE")
    assert schema.write_schema(committed, new, breaking=False) == 0
    assert committed.read_text() == new
    assert "dangerous: " in capsys.readouterr().out


def test_additions_and_deprecations_are_written_without_output(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace("place: String", 'place: String @deprecated(reason: "room") room: String')
    assert schema.write_schema(committed, new, breaking=False) == 0
    assert committed.read_text() == new
    assert capsys.readouterr().out == ""


def test_an_unknown_commit_is_an_error() -> None:
    with pytest.raises(schema.NoBaseError):
        schema.committed_schema("no-such-commit")


def test_the_code_does_not_break_clients_of_the_committed_schema() -> None:
    assert (
        schema.compare_schemas(schema.SCHEMA_FILE.read_text(), schema.current_schema()).breaking
        == ()
    )
