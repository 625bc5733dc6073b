"""Request ids, durations and the metrics that monitoring files use."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from slotlock.api.telemetry.logs import JsonFormatter, TextFormatter, logging_config
from slotlock.graphql.core.errors import internal_error
from slotlock.infrastructure.request_deadline import RequestDeadlines
from slotlock.infrastructure.telemetry import buffered_metrics
from slotlock.infrastructure.telemetry.request_ids import MAX_LENGTH, request_id
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import http_client

QUERY = {"query": "{ __typename }"}
GENERATED = re.compile(r"[0-9a-f]{8}-[0-9a-f]+")
FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
# What Prometheus adds to the samples of each target.
TARGET_LABELS = {"instance", "job"}
FUNCTIONS = {
    *("sum", "max", "count", "by", "rate", "deriv", "abs", "histogram_quantile"),
    *("and", "unless", "offset", "absent"),
}


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_the_id_of_a_client_is_returned(
    app: AppProcess, http: httpx.AsyncClient, method: str
) -> None:
    headers = {"x-request-id": "01J9Z-abc_def.1", "accept": "application/json"}
    options: dict[str, Any] = {"json": QUERY} if method == "POST" else {"params": QUERY}
    for _ in range(2):  # the second has the header of the first
        response = await http.request(method, f"{app.url}/graphql", headers=headers, **options)
        assert response.headers.get_list("x-request-id") == ["01J9Z-abc_def.1"]


@pytest.mark.parametrize(
    ("path", "status"), [("/graphql", 200), ("/healthz", 405), ("/nothing", 404)]
)
async def test_every_response_has_an_id_of_its_own(
    app: AppProcess, http: httpx.AsyncClient, path: str, status: int
) -> None:
    responses = [await http.post(f"{app.url}{path}", json=QUERY) for _ in range(3)]
    assert {response.status_code for response in responses} == {status}
    ids = {response.headers["x-request-id"] for response in responses}
    assert len(ids) == 3
    assert all(GENERATED.fullmatch(id_) for id_ in ids)


@pytest.mark.parametrize(
    "sent", ["", "a b", "line\nbreak", "ada@example.org", "ü", "x" * (MAX_LENGTH + 1)]
)
def test_an_invalid_id_is_replaced(sent: str) -> None:
    assert GENERATED.fullmatch(request_id(sent))


@pytest.mark.parametrize("path", ["/graphql", "/healthz"])
async def test_several_ids_of_a_client_are_replaced(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    headers = [("x-request-id", "first"), ("x-request-id", "second")]
    response = await http.post(f"{app.url}{path}", json=QUERY, headers=headers)
    assert GENERATED.fullmatch(response.headers["x-request-id"])


async def test_an_error_and_its_log_line_have_the_id(caplog: pytest.LogCaptureFixture) -> None:
    RequestDeadlines().begin("my-request")
    body = internal_error("a test failed", ValueError("the cause"))
    assert body["extensions"]["requestId"] == "my-request"
    (record,) = caplog.records
    text = TextFormatter().format(record)
    assert "requestId=my-request" in text.splitlines()[0]
    assert "ValueError: the cause" in text
    line = json.loads(JsonFormatter().format(record))
    assert line["requestId"] == "my-request"
    assert line["level"] == "ERROR"
    assert body["extensions"]["errorId"] in line["message"]
    assert "ValueError: the cause" in line["exception"]


@pytest.mark.parametrize(
    "written", ["\x1b[2J", "\x9b31m", "\r", "\n", "\u2028", "\u202e", "\ud800"]
)
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_what_strangers_write_is_one_line_of_the_log_that_a_terminal_only_prints(
    formatter: logging.Formatter, written: str
) -> None:
    """Write control characters, and what looks like a line or a field, in each part of a line."""
    forged = f"a{written}2026-11-26 14:28:48,114 INFO slotlock status=200"
    error = ValueError(forged)
    record = logging.makeLogRecord(
        {
            "msg": "%s",
            "args": (forged,),
            "exc_info": (ValueError, error, None),
            "fields": {"operation": forged},
        }
    )
    first, *traceback = formatter.format(record).split("\n")
    assert all(line.isprintable() for line in (first, *traceback))
    assert not any(re.match(r"\d{4}-", line) for line in traceback)
    escaped = written.encode("unicode_escape").decode()
    if isinstance(formatter, TextFormatter):
        assert first.count(escaped) == 2
        assert first.count(" status=200") == 1  # in the message, but not as a field
    else:
        line = json.loads(first)
        assert escaped in line["message"]
        assert escaped in line["operation"]


def test_the_level_applies_to_slotlock_and_not_to_the_access_log() -> None:
    config = logging_config("json", "warning")
    assert config["root"]["level"] == "WARNING"
    assert config["loggers"]["slotlock.access"]["level"] == "INFO"
    record = logging.LogRecord("slotlock", logging.INFO, "", 0, "a %s", ("text",), None)
    assert orjson.loads(JsonFormatter().format(record))["message"] == "a text"


async def test_durations_are_counted_in_the_right_bucket_and_written_once() -> None:
    for seconds in (0.0005, 0.001, 0.3, 60.0):
        buffered_metrics.observe_request("test", seconds)
    for _ in range(2):
        buffered_metrics.flush()
    (family,) = buffered_metrics.REQUEST_SECONDS.collect()
    values = {
        (sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value
        for sample in family.samples
        if sample.labels["operation"] == "test"
    }
    assert values["bucket", "0.001"] == 2
    assert values["bucket", "0.25"] == 2
    assert values["bucket", "0.5"] == 3
    assert values["bucket", "30.0"] == 3
    assert values["bucket", "+Inf"] == values["count", None] == 4
    assert values["sum", None] == pytest.approx(60.3015)


async def test_a_buffered_counter_is_written_once() -> None:
    registry = CollectorRegistry()
    counter = buffered_metrics.BufferedCounter(Counter("test", "A test", registry=registry))
    for _ in range(3):
        counter.inc()
    assert registry.get_sample_value("test_total") == 0
    for _ in range(2):
        buffered_metrics.flush()
    assert registry.get_sample_value("test_total") == 3


def test_the_exporter_of_traces_is_not_imported_without_an_endpoint() -> None:
    code = (
        "import sys, slotlock.api.app; "
        "names = ('opentelemetry.exporter', 'opentelemetry.instrumentation'); "
        "sys.exit(any(name.startswith(names) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def dashboard_expressions() -> Iterator[tuple[str, str]]:
    """Yield the title and an expression of each panel."""
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def rule_expressions() -> Iterator[tuple[str, str]]:
    """Yield the name and the expression of each rule."""
    for group in yaml.safe_load((FOLDER / "prometheus-rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]


EXPRESSIONS = [*dashboard_expressions(), *rule_expressions()]


def metric_names(expression: str) -> set[str]:
    """Return the metrics in an expression."""
    without_labels = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)", "", expression)
    return set(re.findall(r"[a-z_]{2,}", without_labels)) - FUNCTIONS


def label_names(expression: str) -> set[str]:
    """Return the labels that an expression selects or groups by."""
    grouped = ",".join(re.findall(r"by \(([^)]*)\)", expression)).split(",")
    selected = re.findall(r"(\w+)(?:=|!=|=~|!~)\"", expression)
    return {name.strip() for name in (*grouped, *selected) if name}


async def exposed_labels(app: AppProcess) -> dict[str, set[str]]:
    """Return the labels of each metric at `/metrics`, after a booking and its cancellation."""
    async with http_client() as http:
        (member,), organizer = create_booking_clients(http, 1, app)
        booked = await member.book_slot(await organizer.add_slot())
        await member.cancel_booking(booked["booking"]["id"])
        text = (await http.get(f"{app.url}/metrics")).text
    labels = {name: set[str]() for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
    labels["up"] = set()  # Prometheus makes it for each target
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


async def test_each_panel_and_rule_uses_metrics_and_labels_that_exist(app: AppProcess) -> None:
    exposed = await exposed_labels(app)
    for title, expression in EXPRESSIONS:
        names = metric_names(expression)
        assert names, f"{title}: no metric"
        assert names <= set(exposed), f"{title}: {names - set(exposed)} not at /metrics"
        labels = set[str]().union(*(exposed[name] for name in names), TARGET_LABELS)
        assert label_names(expression) <= labels, f"{title}: {label_names(expression) - labels}"


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_each_expression_is_well_formed(title: str, expression: str) -> None:
    without_texts = re.sub(r'"[^"]*"', "", expression)
    for opening, closing in ("()", "[]", "{}"):
        assert without_texts.count(opening) == without_texts.count(closing)
    # Only counters have rates, and `rate` needs a range.
    for argument in re.findall(r"rate\(([^)]*)\)", expression):
        assert re.fullmatch(r"\w+_(total|bucket)(\{[^}]*\})?\[(\d+m|\$__rate_interval)\]", argument)
    for grouping in re.findall(r"histogram_quantile\(0\.\d+, sum by \((.*?)\)", expression):
        assert "le" in grouping.replace(" ", "").split(",")
    assert expression.count("histogram_quantile") == expression.count("_bucket")


def test_a_missing_metric_or_label_is_noticed() -> None:
    expression = 'sum by (kind) (rate(slotlock_misspelled_total{code!="ok"}[5m])) > 0'
    assert metric_names(expression) == {"slotlock_misspelled_total"}
    assert label_names(expression) == {"kind", "code"}


def test_the_job_whose_end_is_an_alert_is_that_of_the_guide() -> None:
    guide = (FOLDER.parents[1] / "docs" / "guides" / "monitoring.md").read_text()
    expressions = [expression for _, expression in EXPRESSIONS if "up{" in expression]
    assert [re.findall('job="(.+?)"', each) for each in expressions] == [["slotlock"]] * 2
    # A target that is gone has no `up` at all, and one that is dead has 0.
    assert 'absent(up{job="slotlock"} == 1)' in expressions
    assert guide.count("job_name: slotlock\n") == 1


def test_each_alert_has_a_severity_and_says_what_to_do() -> None:
    for group in yaml.safe_load((FOLDER / "prometheus-rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("warning", "critical")
                assert set(rule["annotations"]) == {"summary", "description"}
