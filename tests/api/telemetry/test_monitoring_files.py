"""Each metric and label of the dashboard and of the rules exists at `/metrics`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import http_client

FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
# What Prometheus adds to the samples of each target.
TARGET_LABELS = {"instance", "job"}
FUNCTIONS = {
    *("sum", "max", "count", "by", "rate", "deriv", "abs", "histogram_quantile", "and"),
}


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


def test_each_alert_has_a_severity_and_says_what_to_do() -> None:
    for group in yaml.safe_load((FOLDER / "prometheus-rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("warning", "critical")
                assert set(rule["annotations"]) == {"summary", "description"}
