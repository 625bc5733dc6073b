"""The probes of graphql-cop 1.15, because no registry has a usable package (decision 0024).

Names, requests and criteria are the same; the probe that graphql-cop disables runs, too.
If GRAPHQL_COP names a checkout, graphql-cop itself runs as well.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

COP_TIMEOUT_S = 120.0
IDES = ("graphiql.min.css", "GraphQL Playground", "GraphiQL", "graphql-playground")
CIRCULAR_QUERY = "query cop { __schema { types { fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } }"  # noqa: E501


class ProbeTarget:
    """The server, with requests as graphql-cop sends them."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self._http = http
        self._url = url

    def post(self, document: str) -> Any:
        """Return the response to a document, or None if it is not JSON."""
        return _json(self._http.post(self._url, json={"query": document, "operationName": "cop"}))

    def batch(self, document: str) -> Any:
        """Return the response to a batch of ten."""
        return _json(self._http.post(self._url, json=[{"query": document}] * 10))

    def form(self, document: str) -> Any:
        """Return the response to a form."""
        return _json(self._http.post(self._url, data={"query": document}))

    def get(self, document: str) -> Any:
        """Return the response to a GET request."""
        return _json(self._http.get(self._url, params={"query": document}))

    def page(self) -> str:
        """Return the page for browsers."""
        return self._http.get(self._url, headers={"Accept": "text/html"}).text


def _json(response: httpx.Response) -> Any:
    with suppress(ValueError):
        return response.json()
    return None


def _data(response: Any, *path: str) -> Any:
    value = response.get("data") if isinstance(response, dict) else None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _errors(response: Any) -> list[dict[str, Any]]:
    errors = response.get("errors") if isinstance(response, dict) else None
    return errors if isinstance(errors, list) else []


def _suggests(target: ProbeTarget) -> bool:
    errors = _errors(target.post("query cop { __schema { directive } }"))
    return any("Did you mean" in error["message"] for error in errors)


def _introspects(target: ProbeTarget) -> bool:
    response = target.post("query cop { __schema { types { name fields { name } } } }")
    return bool(_data(response, "__schema", "types"))


def _allows_circular_query(target: ProbeTarget) -> bool:
    return len(_data(target.post(CIRCULAR_QUERY), "__schema", "types") or ()) > 25


def _allows_aliases(target: ProbeTarget) -> bool:
    aliases = " ".join(f"alias{number}: __typename" for number in range(101))
    return bool(_data(target.post(f"query cop {{ {aliases} }}"), "alias100"))


def _allows_batches(target: ProbeTarget) -> bool:
    response = target.batch("query cop { __typename }")
    return isinstance(response, list) and len(response) >= 10


def _allows_directives(target: ProbeTarget) -> bool:
    return len(_errors(target.post(f"query cop {{ __typename {'@aa' * 10} }}"))) == 10


def _allows_fields(target: ProbeTarget) -> bool:
    return bool(_data(target.post(f"query cop {{ {'__typename ' * 500} }}"), "__typename"))


def _exposes_extension(target: ProbeTarget, document: str, extension: str) -> bool:
    response = target.post(document)
    extensions = [error.get("extensions", {}) for error in _errors(response)]
    return any(extension in found for found in extensions) or extension in (response or {}).get(
        "extensions", {}
    )


PROBES: dict[str, Callable[[ProbeTarget], bool]] = {
    "field_suggestions": _suggests,
    "introspection": _introspects,
    "detect_graphiql": lambda target: any(name in target.page() for name in IDES),
    "get_method_support": lambda target: bool(_data(target.get("query cop {__typename}"))),
    "alias_overloading": _allows_aliases,
    "batch_query": _allows_batches,
    "trace_mode": lambda target: _exposes_extension(target, "query cop { __typename }", "tracing"),
    "directive_overloading": _allows_directives,
    "circular_query_introspection": _allows_circular_query,
    "get_based_mutation": lambda target: bool(_data(target.get("mutation cop {__typename}"))),
    "post_based_csrf": lambda target: bool(_data(target.form("query cop { __typename }"))),
    "unhandled_error_detection": lambda target: _exposes_extension(
        target, "qwerty cop { abc }", "exception"
    ),
    "field_duplication": _allows_fields,
}


def findings(url: str) -> list[str]:
    """Return the names of all probes with a finding; raises httpx.TransportError."""
    with httpx.Client(trust_env=False, timeout=20) as http:
        target = ProbeTarget(http, url)
        return [name for name, finds in PROBES.items() if finds(target)]


def real_findings(checkout: Path, url: str) -> tuple[int, list[str]]:
    """Run graphql-cop and return the number of its tests and the titles of its findings.

    The Python in its .venv is used if it exists.

    Raises:
        ValueError: graphql-cop printed no JSON.
    """
    own_python = checkout / ".venv" / "bin" / "python"
    python = str(own_python) if own_python.exists() else sys.executable
    completed = subprocess.run(
        [python, "graphql-cop.py", "-t", url, "-o", "json"],
        cwd=checkout,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=COP_TIMEOUT_S,
    )
    try:
        results = json.loads(completed.stdout)
    except ValueError:
        lines = (completed.stderr or completed.stdout).strip().splitlines()[-3:]
        raise ValueError(f"graphql-cop printed no JSON: {' | '.join(lines)}") from None
    return len(results), [result["title"] for result in results if result["result"]]
