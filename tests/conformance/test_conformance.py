"""The conformance checks detect faults; otherwise a table without failures proves nothing."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance import graphql_cop
from conformance.__main__ import format_audits
from conformance.fuzz.config import FIELD_ID_KINDS, ID_KINDS, config
from conformance.fuzz.judgment import judge
from conformance.fuzz.run import SIGN_OUT_MUTATIONS
from conformance.fuzz.seeds import Seeds
from conformance.table import Row, format_table
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import app_environment, app_process

DEV = (sys.executable, "-m", "slotlock", "dev")


def body_of(**response: Any) -> bytes:
    """Return the body of a GraphQL response."""
    return json.dumps(response).encode()


def error(code: str) -> dict[str, Any]:
    """Return a GraphQL error with this code."""
    return {"message": "why", "extensions": {"code": code}}


def test_the_table_names_every_failure_and_counts_the_rest_as_passed() -> None:
    text = format_table([Row("one", 3), Row("two", 3, ("this", "that"))])
    assert "3/3" in text
    assert "1/3" in text
    assert "this" in text
    assert "that" in text
    assert "1 of 2 checks FAIL" in text


def test_a_check_without_parts_does_not_pass() -> None:
    assert not Row("nothing", 0).is_ok


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, body_of(data=None)),
        (503, b""),
        (200, b"<html>"),
        (200, body_of(data={"me": None}, errors=[error("INTERNAL")])),
        (200, body_of(errors=[error("BAD_USER_INPUT"), error("INTERNAL")])),
        (200, body_of(errors=[{"message": "no code"}])),
        (200, body_of(errors=[error("RATE_LIMITED")])),
        (200, body_of(errors=[error("UNAUTHENTICATED")])),
    ],
)
def test_a_server_error_fails_the_fuzzing(status: int, body: bytes) -> None:
    assert judge(status, body, stays_signed_in=True).problem is not None


def test_a_refusal_of_an_anonymous_caller_is_no_failure() -> None:
    judged = judge(200, body_of(errors=[error("UNAUTHENTICATED")]), stays_signed_in=False)
    assert judged.problem is None
    assert not judged.executed


def test_every_id_argument_is_fuzzed_with_existing_ids() -> None:
    ids = {name: [f"{name} 1"] for name in {*ID_KINDS.values(), *FIELD_ID_KINDS.values()}}
    seeds = Seeds(ids, {"slots": "a cursor"}, caller_id="users 2")
    parsed = tomllib.loads(config(executable_schema, seeds))
    assert {
        "*.slot.id",
        "*.bookSlots.input.claims[*].slotId",
        "*.createSlotSeries.input.slot.campaignId",
        "*.slots.after",
    } <= set(parsed["parameters"])
    assert {binding["dictionary"] for binding in parsed["parameters"].values()} <= set(
        parsed["dictionaries"]
    )


def test_every_sign_out_mutation_of_the_fuzzing_is_in_the_schema() -> None:
    assert executable_schema.mutation_type is not None
    assert set(SIGN_OUT_MUTATIONS) <= set(executable_schema.mutation_type.fields)


@pytest.mark.parametrize(("total", "is_ok"), [(61, True), (60, False), (0, False)])
def test_a_missing_audit_fails_the_check(total: int, is_ok: bool) -> None:
    assert format_audits({"total": total, "failures": []}).is_ok is is_ok


def test_the_probes_detect_what_the_development_profile_exposes(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    settings = {**app_environment(servers, "probed"), "SLOTLOCK_DATA_DIR": str(tmp_path / "data")}
    with app_process(settings, tmp_path, DEV) as app:
        found = graphql_cop.findings(app.url + "/graphql")
    assert {"introspection", "detect_graphiql", "get_method_support", "field_suggestions"} <= set(
        found
    )
    assert "batch_query" not in found
