"""The schema is written down, described to the last value, and its refusals are one family."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLUnionType,
)

from conformance.descriptions import descriptions, own_types, undescribed
from slotlock.cli.main import main
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.limits.operation_kinds import FIELD_KINDS
from slotlock.graphql.schema.schema import executable_schema

ROOT = Path(__file__).parents[3]
TYPES = own_types(executable_schema)
UNIONS = [type_ for type_ in TYPES.values() if isinstance(type_, GraphQLUnionType)]
REFUSAL = executable_schema.type_map["Refusal"]


def printed() -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(["schema"]) == 0
    return output.getvalue()


def test_the_committed_schema_is_the_printed_one() -> None:
    assert (ROOT / "schema.graphql").read_text() == printed(), "run `make schema`"


def test_the_schema_is_the_same_whichever_type_is_imported_first() -> None:
    first = "import slotlock.graphql.booking.limit_refusals, slotlock.graphql.schema.schema"
    subprocess.run((sys.executable, "-c", first), cwd=ROOT, check=True)


def test_everything_is_described() -> None:
    everything = dict(descriptions(executable_schema))
    assert {
        "Mutation",
        "Slot",
        "Slot.remaining",
        "Query.node(id:)",
        "SlotKind.OTHER",
        "LoginInput.email",
        "@deprecated(reason:)",
    } <= set(everything)
    assert undescribed(executable_schema) == []


def test_descriptions_are_sentences_that_say_more_than_the_name() -> None:
    values = {name for name, type_ in TYPES.items() if isinstance(type_, GraphQLEnumType)}
    for name, text in descriptions(executable_schema):
        assert re.fullmatch(r"[A-Z0-9`].*[.!?]", text or "", re.DOTALL), (name, text)
        said = re.sub(r"\b(the|an?|of|its|this)\b|[^a-z]", "", (text or "").lower())
        own = re.split(r"[.(]", name.removesuffix(":)"))[-1].lower()
        # Of a value like MONDAY there is no more to say.
        assert said != own or name.partition(".")[0] in values, (name, text)


@pytest.mark.parametrize("union", UNIONS, ids=lambda union: str(union.name))
def test_an_answer_is_what_was_asked_for_or_a_refusal(union: GraphQLUnionType) -> None:
    wanted = [member.name for member in union.types if REFUSAL not in member.interfaces]
    assert len(wanted) == 1


def test_every_mutation_that_can_be_refused_answers_with_a_union() -> None:
    assert executable_schema.mutation_type is not None
    plain = {
        name
        for name, field in executable_schema.mutation_type.fields.items()
        if not str(field.type).endswith("Result!")
    }
    calendars = {"createCalendarFeed", "revokeCalendarFeed"}
    assert plain == {"logout", "endOtherSessions"} | calendars


def test_what_is_counted_apart_are_mutations() -> None:
    assert executable_schema.mutation_type is not None
    assert set(executable_schema.mutation_type.fields) >= set(FIELD_KINDS)


def test_every_refusal_has_a_code_of_its_own_name() -> None:
    assert isinstance(REFUSAL, GraphQLInterfaceType)
    codes = executable_schema.type_map["RefusalCode"]
    assert isinstance(codes, GraphQLEnumType)
    names = {type_.name for type_ in executable_schema.get_possible_types(REFUSAL)}
    assert {code.title().replace("_", "") for code in codes.values} == names
    members = {member.name for union in UNIONS for member in union.types}
    assert names <= members


def test_the_codes_of_errors_are_those_of_the_contract() -> None:
    contract = {"UNAUTHENTICATED", "FORBIDDEN", "BAD_USER_INPUT", "RATE_LIMITED",
                "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "LIMIT_EXCEEDED",
                "INTERNAL"}  # fmt: skip
    assert set(ErrorCode) <= contract


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_what_has_one_name_among_the_members_of_a_union_has_one_type(
    union: GraphQLUnionType,
) -> None:
    """Else a client that selects it in two of them is told that its document does not merge."""
    types: dict[str, set[str]] = {}
    for member in union.types:
        for name, field in member.fields.items():
            types.setdefault(name, set()).add(str(field.type))
    assert {name: told for name, told in types.items() if len(told) > 1} == {}
