"""The checks see what is wrong; a table that says `ok` would prove nothing else."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance import graphql_cop
from conformance.__main__ import audit_row
from conformance.fuzz.config import FIELD_ID_KINDS, ID_KINDS, config
from conformance.fuzz.judgment import judge
from conformance.fuzz.run import SIGN_OUT_MUTATIONS
from conformance.table import Row, format_table
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import app_environment, app_process

DEV = (sys.executable, "-m", "slotlock", "dev")


def told(**answer: Any) -> bytes:
    return json.dumps(answer).encode()


def error(code: str) -> dict[str, Any]:
    return {"message": "why", "extensions": {"code": code}}


def test_the_table_names_every_failure_and_counts_the_rest_as_passed() -> None:
    text = format_table([Row("one", 3), Row("two", 3, ("this", "that"))])
    assert "3/3" in text
    assert "1/3" in text
    assert "this" in text
    assert "that" in text
    assert "1 of 2 checks FAIL" in text


def test_a_check_that_looked_at_nothing_is_not_passed() -> None:
    assert not Row("nothing", 0).is_ok


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, told(data=None)),
        (503, b""),
        (200, b"<html>"),
        (200, told(data={"me": None}, errors=[error("INTERNAL")])),
        (200, told(errors=[error("BAD_USER_INPUT"), error("INTERNAL")])),
        (200, told(errors=[{"message": "no code"}])),
        (200, told(errors=[error("RATE_LIMITED")])),
        (200, told(errors=[error("UNAUTHENTICATED")])),
    ],
)
def test_an_answer_that_is_our_fault_fails_the_fuzzing(status: int, body: bytes) -> None:
    assert judge(status, body, stays_signed_in=True).problem is not None


def test_an_answer_to_what_nobody_may_ask_is_no_failure() -> None:
    judged = judge(200, told(errors=[error("UNAUTHENTICATED")]), stays_signed_in=False)
    assert judged.problem is None
    assert not judged.executed


def test_every_argument_that_takes_an_id_is_given_some_that_are_there() -> None:
    seeds = {name: [f"{name} 1"] for name in {*ID_KINDS.values(), *FIELD_ID_KINDS.values()}}
    read = tomllib.loads(config(executable_schema, seeds, {"slots": "a cursor"}))
    assert {
        "*.slot.id",
        "*.bookSlots.input.claims[*].slotId",
        "*.createSlotSeries.input.slot.campaignId",
        "*.slots.after",
    } <= set(read["parameters"])
    assert {binding["dictionary"] for binding in read["parameters"].values()} <= set(
        read["dictionaries"]
    )


def test_whom_the_fuzzing_signs_out_it_knows_by_fields_of_the_schema() -> None:
    assert executable_schema.mutation_type is not None
    assert set(SIGN_OUT_MUTATIONS) <= set(executable_schema.mutation_type.fields)


@pytest.mark.parametrize(("total", "good"), [(61, True), (60, False), (0, False)])
def test_fewer_audits_than_there_are_are_no_pass(total: int, good: bool) -> None:
    assert audit_row({"total": total, "failures": []}).is_ok is good


def test_the_probes_see_what_the_development_profile_shows(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    settings = {**app_environment(servers, "probed"), "SLOTLOCK_DATA_DIR": str(tmp_path / "data")}
    with app_process(settings, tmp_path, DEV) as app:
        found = graphql_cop.findings(app.url + "/graphql")
    assert {"introspection", "detect_graphiql", "get_method_support", "field_suggestions"} <= set(
        found
    )
    assert "batch_query" not in found
