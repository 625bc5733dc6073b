"""Prometheus metrics of an app, as a monitoring system reads them."""

import re

import httpx

from tests.support.apps.processes import AppProcess

ACTIVE_SUBSCRIPTIONS = "slotlock_subscriptions_active"


def read_metrics(app: AppProcess) -> str:
    """Return the text of /metrics, on a new connection: with several workers, of any of them."""
    return httpx.get(app.url + "/metrics", trust_env=False, timeout=30).text


def metric_value(text: str, series: str) -> float:
    """Return the value of a series, such as `name` or `name{label="x"}`; 0 if it is missing."""
    match = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0.0


def read_metric(app: AppProcess, series: str) -> float:
    """Return the current value of a series."""
    return metric_value(read_metrics(app), series)


def active_subscriptions(app: AppProcess) -> float:
    """Return how many subscriptions are open in the app."""
    return read_metric(app, ACTIVE_SUBSCRIPTIONS)
