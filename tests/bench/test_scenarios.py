"""The scenarios of the comparison and the growth cases count right and send what they claim."""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema, parse, validate

from bench.board.pages import depth
from bench.comparison.cpu import CpuTime
from bench.comparison.load import SCRIPT, WORKLOADS, Load
from bench.comparison.ratios import Spread
from bench.comparison.scenarios import board, queue
from bench.comparison.scenarios.fan_out import PLACES, FanOutRun, p2_publisher, slotlock_publisher
from bench.comparison.scenarios.report import divide, fan_out_lines
from slotlock.api.board.documents import board_documents

FIRST_DAY = datetime(2031, 5, 1, tzinfo=UTC)
SCHEMA = build_schema((Path(__file__).parents[2] / "schema.graphql").read_text())
# Runs the script of the benchmark without a server and prints its first requests. wrk does not send
# what the first call returns.
PROBE = """
dofile(os.getenv("SCRIPT"))
request()
for _ = 1, 40 do io.write(request(), "\\0") end
"""


def load(requests: int, tickets: int, **fields: Any) -> Load:
    """Return the counts of requests for tickets; the others were refused at once."""
    outcomes = {"ticket": tickets, "full": requests - tickets, "booked": 0, "other": 0}
    counts: dict[str, Any] = {
        "duration_us": 1_000_000,
        "p50_us": 1,
        "p99_us": 2,
        "p999_us": 3,
        "outcomes": outcomes,
        "statuses": {"200": requests},
        "socket_errors": {},
        "unexpected": "",
        "client_cpu_s": 0.0,
        **fields,
    }
    return Load(requests=requests, **counts)


def test_all_users_request_each_slot_and_half_of_them_get_a_place() -> None:
    assert [queue.expected_bookings(n) for n in (0, 300, 500, 900, 1000, 1300, 2600)] == [
        *(0, 300, 500, 500, 500, 800, 1500)
    ]


@pytest.mark.parametrize("booked", [1300, 1364])
def test_a_queue_that_gives_exactly_the_places_has_no_problem(booked: int) -> None:
    assert queue.find_problems(load(2300, 1400), booked, 0, drained=True) == []


@pytest.mark.parametrize(
    ("booked", "wrong", "drained", "counts", "text"),
    [
        (1299, 0, True, load(2300, 1400), "1299 bookings in MongoDB, 1300 to 1364 expected"),
        (1365, 0, True, load(2300, 1400), "1365 bookings"),
        (1300, 1, True, load(2300, 1400), "1 slots whose"),
        (1300, 0, False, load(2300, 1400), "not empty"),
        (1300, 0, True, load(2300, 1400, statuses={"503": 1}), "503"),
        (20_001, 0, True, load(40_001, 30_000), "more than users and slots"),
    ],
)
def test_a_queue_that_went_wrong_is_detected(
    booked: int, wrong: int, drained: bool, counts: Load, text: str
) -> None:
    (problem,) = queue.find_problems(counts, booked, wrong, drained=drained)
    assert text in problem


def test_final_answers_count_tickets_and_refusals_until_the_queue_is_empty() -> None:
    run = queue.QueueRun(1, load(3000, 2000), 2.0, 1500, CpuTime((), 0, 0), 0, [])
    assert (run.rate, run.ticket_rate) == (1500, 1000)


def test_a_fan_out_is_divided_by_that_of_the_peer_in_the_same_round() -> None:
    assert divide([10, 30], [20, 10]) == Spread(1.75, 0.5, 3)
    runs = [
        FanOutRun(1, target, 1000, first_to_last, 40, 20, 30)
        for target, first_to_last in (("slotlock", 10.0), ("P2", 20.0))
    ]
    assert "first to last ms: slotlock 10.0, P2 20.0; ratio 0.50" in fan_out_lines(runs)[0]


def test_each_change_of_a_fan_out_has_a_value_of_its_own() -> None:
    publisher = slotlock_publisher(7, ["a", "b", "c"])
    assert [publisher.change(n).value for n in range(3)] == [PLACES - 1, PLACES - 2, PLACES - 3]
    assert [publisher.change(n).token for n in range(3)] == ["a", "b", "c"]
    assert [p2_publisher().change(n).value for n in range(3)] == [1, 2, 3]
    for document in (publisher.subscription, json.loads(publisher.change(0).body)["query"]):
        assert validate(SCHEMA, parse(document)) == []


def sent_requests(kind: str, workload: str, folder: Path, slots: int = 400) -> list[str]:
    """Return the first requests that wrk would send; it cannot connect and sends none."""
    (folder / "tokens").write_text("one\ntwo\nthree\n")
    (folder / "probe.lua").write_text(PROBE)
    (folder / "body").write_text(board.request_body("campaign_1"))
    environment = {
        "SCRIPT": str(SCRIPT),
        "KIND": kind,
        "WORKLOAD": workload,
        "FIRST_SLOT": "16",
        "SLOTS": str(slots),
        "FIRST_DAY": str(int(FIRST_DAY.timestamp())),
        "TOKENS": str(folder / "tokens"),
        "BODY": str(folder / "body"),
    }
    wrk = subprocess.run(
        ["wrk", "-t1", "-c1", "-d1s", "-s", str(folder / "probe.lua"), "http://127.0.0.1:1"],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    requests = wrk.stdout.decode().split("\0")
    assert len(requests) == 41, wrk.stderr
    return requests[:40]


needs_wrk = pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")


@needs_wrk
@pytest.mark.parametrize("workload", [*WORKLOADS, "crowd", "queue", "board"])
def test_every_request_to_slotlock_is_complete_and_fits_the_schema(
    workload: str, tmp_path: Path
) -> None:
    for request in sent_requests("slotlock", workload, tmp_path):
        head, _, body = request.partition("\r\n\r\n")
        assert f"Content-Length: {len(body)}" in head
        sent = json.loads(body)
        text = sent.get("query") or board_documents()[sent["documentId"]]
        assert validate(SCHEMA, parse(text)) == []


@needs_wrk
def test_no_user_requests_the_same_slot_twice(tmp_path: Path) -> None:
    for workload, slots in (("spread", 7), ("crowd", 400), ("queue", 400)):
        requests = sent_requests("slotlock", workload, tmp_path, slots)
        # All users of seven slots have booked all of them after 21 requests.
        pairs = [
            (request.split("Bearer ")[1].split("\r")[0], request.split('"slot_')[1][:24])
            for request in requests[:21]
        ]
        assert len(set(pairs)) == 21
        assert {int(slot, 16) for _, slot in pairs} == set(range(16, 23))


@needs_wrk
def test_the_mix_has_eighty_percent_reads_and_each_booking_its_own_slot(tmp_path: Path) -> None:
    for kind in ("slotlock", "mercurius", "rest"):
        requests = sent_requests(kind, "mixed", tmp_path)
        bookings = [r for r in requests if "bookSlot" in r or "/book/" in r]
        lists = [r for r in requests if "slots(" in r or "openSlots" in r or "/open/" in r]
        assert (len(bookings), len(lists), len(requests)) == (4, 4, 40)
        assert len(set(bookings)) == 4


def test_round_trips_are_the_longest_chain_of_requests() -> None:
    assert depth([]) == 0
    assert depth([(0, 10), (1, 9), (10, 20), (9.5, 30), (21, 25)]) == 3
