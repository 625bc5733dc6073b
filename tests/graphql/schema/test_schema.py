"""The schema is committed, described and uniform; its unions list exactly the outcomes."""

import contextlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from graphql import GraphQLEnumType, GraphQLInterfaceType, GraphQLUnionType

import slotlock.auth
import slotlock.services
from conformance.descriptions import descriptions, own_types, undescribed
from slotlock.cli.main import main
from slotlock.domain.booking import rules
from slotlock.domain.booking.decision import BookingRule
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.core.outcomes import Result
from slotlock.graphql.limits.operation_kinds import FIELD_KINDS
from slotlock.graphql.schema.schema import executable_schema

ROOT = Path(__file__).parents[3]
TYPES = own_types(executable_schema)
UNIONS = [type_ for type_ in TYPES.values() if isinstance(type_, GraphQLUnionType)]
REFUSAL = executable_schema.type_map["Refusal"]
MAX_WORDS_PER_SENTENCE = 25
# The slot of a ticket can become hidden from its user, unlike that of a refusal.
DIFFERENT_FIELDS = {"RequestBookingResult": {"slot"}}
FIRST_IMPORTS = ("core.enums", "booking.booking_results")
GRAPHQL = "slotlock.graphql."
# `endSession` has no outcome in `auth`: ending a session twice is no error there. A link to an
# export needs no use case: its mutation only finds what to export. Two use cases copy a campaign:
# one of them, only on paper. The rest of an erasure follows its first step.
WITHOUT_USE_CASE = {
    "CopyCampaignResult",
    "CreateExportLinkResult",
    "EndSessionResult",
    "ClaimUserResult",
    "EraseUserResult",
}


def printed_schema(*, first_import: str) -> str:
    """Return the schema that a new process prints after it imported this module first."""
    script = (
        f"import slotlock.graphql.{first_import}\n"
        "from slotlock.cli.main import main\n"
        "raise SystemExit(main(['schema']))"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_committed_schema_is_the_schema_of_the_code() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(["schema"]) == 0
    assert (ROOT / "schema.graphql").read_text() == output.getvalue(), "run `make schema`"


@pytest.mark.parametrize("module", FIRST_IMPORTS)
def test_the_schema_does_not_depend_on_the_order_of_imports(module: str) -> None:
    assert printed_schema(first_import=module) == (ROOT / "schema.graphql").read_text()


def test_everything_in_the_schema_has_a_description() -> None:
    coordinates = {name for name, _ in descriptions(executable_schema)}
    assert {
        "Mutation",
        "Slot",
        "Slot.remaining",
        "Query.node(id:)",
        "SlotKind.OTHER",
        "LoginInput.email",
        "@deprecated(reason:)",
    } <= coordinates
    assert undescribed(executable_schema) == []


def test_descriptions_are_sentences_that_say_more_than_the_name() -> None:
    enums = {name for name, type_ in TYPES.items() if isinstance(type_, GraphQLEnumType)}
    for name, text in descriptions(executable_schema):
        assert re.fullmatch(r"[A-Z0-9`].*[.!?]", text or "", re.DOTALL), (name, text)
        words = re.sub(r"\b(the|an?|of|its|this)\b|[^a-z]", "", (text or "").lower())
        own_name = re.split(r"[.(]", name.removesuffix(":)"))[-1].lower()
        # There is no more to say about an enum value like MONDAY.
        assert words != own_name or name.partition(".")[0] in enums, (name, text)


def test_descriptions_have_short_sentences() -> None:
    for name, text in descriptions(executable_schema):
        for sentence in re.split(r"(?<=[.:;!?])\s+", text or ""):
            assert len(sentence.split()) <= MAX_WORDS_PER_SENTENCE, (name, sentence)


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_a_union_has_one_result_and_otherwise_refusals(union: GraphQLUnionType) -> None:
    results = [member.name for member in union.types if REFUSAL not in member.interfaces]
    assert len(results) == 1


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_fields_of_one_name_have_one_type_across_a_union(union: GraphQLUnionType) -> None:
    """Otherwise a document that selects the field of two members does not validate."""
    types: dict[str, set[str]] = {}
    for member in union.types:
        for name, field in member.fields.items():
            types.setdefault(name, set()).add(str(field.type))
    different = {name for name, found in types.items() if len(found) > 1}
    assert different == DIFFERENT_FIELDS.get(union.name, set())


def test_every_mutation_that_can_be_refused_returns_a_union() -> None:
    assert executable_schema.mutation_type is not None
    without_union = {
        name
        for name, field in executable_schema.mutation_type.fields.items()
        if not str(field.type).endswith("Result!")
    }
    calendar_feeds = {"createCalendarFeed", "revokeCalendarFeed"}
    assert without_union == {"logout", "endOtherSessions"} | calendar_feeds


def test_fields_with_their_own_rate_limit_are_mutations() -> None:
    assert executable_schema.mutation_type is not None
    assert set(executable_schema.mutation_type.fields) >= set(FIELD_KINDS) - {"tokenOwner"}


def test_every_refusal_has_its_own_code_and_is_in_a_union() -> None:
    assert isinstance(REFUSAL, GraphQLInterfaceType)
    codes = executable_schema.type_map["RefusalCode"]
    assert isinstance(codes, GraphQLEnumType)
    names = {type_.name for type_ in executable_schema.get_possible_types(REFUSAL)}
    assert {code.title().replace("_", "") for code in codes.values} == names
    assert names <= {member.name for union in UNIONS for member in union.types}


def test_error_codes_are_those_of_the_contract() -> None:
    contract = {"UNAUTHENTICATED", "FORBIDDEN", "BAD_USER_INPUT", "RATE_LIMITED",
                "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "LIMIT_EXCEEDED",
                "INTERNAL", "OUTCOME_UNKNOWN", "PERSISTED_QUERY_NOT_SUPPORTED"}  # fmt: skip
    assert set(ErrorCode) <= contract


def outcomes_of_use_cases() -> Iterator[frozenset[object]]:
    """Yield the outcomes of each function in `auth` and `services`, and of each rule."""
    for package in (slotlock.auth, slotlock.services, rules):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(import_module(found.name)).values():
                if isinstance(value, BookingRule):  # `checkIn` is not made by `booking_mutation`
                    yield frozenset(get_args(value.outcomes))
                elif inspect.iscoroutinefunction(value):
                    returned: Any = value.__annotations__["return"]
                    yield frozenset(get_args(returned))
                    yield frozenset(get_args(next(iter(get_args(returned)), None)))


def test_a_union_lists_exactly_the_outcomes_of_a_use_case() -> None:
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith(GRAPHQL)]
    results = {each for module in modules for each in module.values() if isinstance(each, Result)}
    names = {each.name for each in results}
    # `booking_mutation` makes the others from the outcomes of a change.
    assert len(names) > 40
    assert names < executable_schema.type_map.keys()
    known = set(outcomes_of_use_cases())
    others = {each.name for each in results if frozenset(get_args(each.outcomes)) not in known}
    assert others == WITHOUT_USE_CASE
