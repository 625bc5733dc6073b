"""The proxies of deploy/ pass on every path for clients, and hide those for operators."""

import re
from pathlib import Path

import pytest
import yaml

from slotlock.api.app import http_routes
from slotlock.api.settings.settings import Settings

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
INGRESS = DEPLOY / "kubernetes" / "overlays" / "example" / "ingress.yaml"
OPERATOR_PATHS = {"/healthz", "/readyz", "/metrics"}
SECRET_PATHS = {"/calendars/private", "/exports/links", "/unsubscribe"}


def app_paths() -> set[str]:
    """Return a path for each route of the app, such as /calendars/x."""
    routes = http_routes(Settings(), development=False)
    return {re.sub(r"\{[^}]+\}", "x", route.path) for route in routes} | {"/graphql"}


def ingress_paths() -> list[tuple[str, str]]:
    """Return the path and its type of each rule of the ingress."""
    return [
        (path["path"], path["pathType"])
        for ingress in yaml.safe_load_all(INGRESS.read_text())
        for rule in ingress["spec"]["rules"]
        for path in rule["http"]["paths"]
    ]


def matches(path: str, rule: tuple[str, str]) -> bool:
    """Return whether a rule of an ingress matches a path."""
    prefix, path_type = rule
    if path_type == "Exact":
        return path == prefix
    if path_type == "ImplementationSpecific":  # ingress-nginx compares characters
        return path.startswith(prefix)
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def test_the_ingress_passes_on_every_path_except_those_for_operators() -> None:
    passed = {path for path in app_paths() if any(matches(path, each) for each in ingress_paths())}
    assert passed == app_paths() - OPERATOR_PATHS


def test_every_path_of_the_ingress_is_one_of_the_app() -> None:
    paths = app_paths() | {f"{path}/x" for path in SECRET_PATHS}
    for rule in ingress_paths():
        assert any(matches(path, rule) for path in paths), rule


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("nginx/slotlock.conf", r"location ~ \^/\(([a-z|]+)\)\$ \{\s+return 404;"),
        ("caddy/Caddyfile", r"@internal path ((?:/[a-z]+ ?)+)\n\s+respond @internal 404"),
    ],
)
def test_nginx_and_caddy_hide_exactly_the_paths_for_operators(file: str, pattern: str) -> None:
    (names,) = re.findall(pattern, (DEPLOY / file).read_text())
    assert {f"/{name}" for name in re.findall("[a-z]+", names)} == OPERATOR_PATHS


def test_no_proxy_logs_the_paths_that_are_secrets() -> None:
    """`python -m conformance --only proxies` looks into the logs of running proxies."""
    nginx = (DEPLOY / "nginx" / "slotlock.conf").read_text()
    (names, body) = re.findall(r"location ~ \^/\(([a-z|/]+)\)/ \{(.+?)\}", nginx, re.DOTALL)[0]
    assert {f"/{name}" for name in names.split("|")} == SECRET_PATHS
    assert "access_log off;" in body
    assert "error_log /dev/null crit;" in body
    caddy = (DEPLOY / "caddy" / "Caddyfile").read_text()
    (names,) = re.findall(r"request>uri regexp \^/\(([a-z|/]+)\)/\.\* /\$1/\.\.\.\n", caddy)
    assert {f"/{name}" for name in names.split("|")} == SECRET_PATHS
    ingresses = list(yaml.safe_load_all(INGRESS.read_text()))
    unlogged = {
        path["path"]
        for ingress in ingresses
        for path in ingress["spec"]["rules"][0]["http"]["paths"]
        if ingress["metadata"]["annotations"].get("nginx.ingress.kubernetes.io/enable-access-log")
        == "false"
    }
    assert unlogged == SECRET_PATHS
