"""The probes of graphql-cop in our own words: no registry has a form of it that works (ADR 0024).

Names, requests and criteria are those of its version 1.15; the one that it has switched off is
asked as well. GRAPHQL_COP names a checkout, which is then run besides.
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
    """The server, asked as graphql-cop asks."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self._http = http
        self._url = url

    def post(self, document: str) -> Any:
        """The answer to a document; None for what is no JSON."""
        return _json(self._http.post(self._url, json={"query": document, "operationName": "cop"}))

    def batch(self, document: str) -> Any:
        """The answer to ten at once."""
        return _json(self._http.post(self._url, json=[{"query": document}] * 10))

    def form(self, document: str) -> Any:
        """The answer to a form."""
        return _json(self._http.post(self._url, data={"query": document}))

    def get(self, document: str) -> Any:
        """The answer to a link."""
        return _json(self._http.get(self._url, params={"query": document}))

    def page(self) -> str:
        """What a browser is shown."""
        return self._http.get(self._url, headers={"Accept": "text/html"}).text


def _json(response: httpx.Response) -> Any:
    with suppress(ValueError):
        return response.json()
    return None


def _data(answer: Any, *path: str) -> Any:
    found = answer.get("data") if isinstance(answer, dict) else None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _errors(answer: Any) -> list[dict[str, Any]]:
    errors = answer.get("errors") if isinstance(answer, dict) else None
    return errors if isinstance(errors, list) else []


def _suggests(target: ProbeTarget) -> bool:
    errors = _errors(target.post("query cop { __schema { directive } }"))
    return any("Did you mean" in error["message"] for error in errors)


def _introspects(target: ProbeTarget) -> bool:
    answer = target.post("query cop { __schema { types { name fields { name } } } }")
    return bool(_data(answer, "__schema", "types"))


def _goes_in_circles(target: ProbeTarget) -> bool:
    return len(_data(target.post(CIRCULAR_QUERY), "__schema", "types") or ()) > 25


def _takes_aliases(target: ProbeTarget) -> bool:
    aliases = " ".join(f"alias{number}: __typename" for number in range(101))
    return bool(_data(target.post(f"query cop {{ {aliases} }}"), "alias100"))


def _takes_batches(target: ProbeTarget) -> bool:
    answer = target.batch("query cop { __typename }")
    return isinstance(answer, list) and len(answer) >= 10


def _takes_directives(target: ProbeTarget) -> bool:
    return len(_errors(target.post(f"query cop {{ __typename {'@aa' * 10} }}"))) == 10


def _takes_fields(target: ProbeTarget) -> bool:
    return bool(_data(target.post(f"query cop {{ {'__typename ' * 500} }}"), "__typename"))


def _exposes_extension(target: ProbeTarget, document: str, extension: str) -> bool:
    answer = target.post(document)
    extensions = [error.get("extensions", {}) for error in _errors(answer)]
    return any(extension in told for told in extensions) or extension in (answer or {}).get(
        "extensions", {}
    )


PROBES: dict[str, Callable[[ProbeTarget], bool]] = {
    "field_suggestions": _suggests,
    "introspection": _introspects,
    "detect_graphiql": lambda target: any(name in target.page() for name in IDES),
    "get_method_support": lambda target: bool(_data(target.get("query cop {__typename}"))),
    "alias_overloading": _takes_aliases,
    "batch_query": _takes_batches,
    "trace_mode": lambda target: _exposes_extension(target, "query cop { __typename }", "tracing"),
    "directive_overloading": _takes_directives,
    "circular_query_introspection": _goes_in_circles,
    "get_based_mutation": lambda target: bool(_data(target.get("mutation cop {__typename}"))),
    "post_based_csrf": lambda target: bool(_data(target.form("query cop { __typename }"))),
    "unhandled_error_detection": lambda target: _exposes_extension(
        target, "qwerty cop { abc }", "exception"
    ),
    "field_duplication": _takes_fields,
}


def findings(url: str) -> list[str]:
    """The names of the probes that find something. Errors: httpx.TransportError."""
    with httpx.Client(trust_env=False, timeout=20) as http:
        target = ProbeTarget(http, url)
        return [name for name, finds in PROBES.items() if finds(target)]


def real_findings(checkout: Path, url: str) -> tuple[int, list[str]]:
    """How many tests graphql-cop itself ran, and the titles of its findings. Errors: ValueError.

    It runs with the Python in its own .venv, if it has one.
    """
    own = checkout / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    ended = subprocess.run(
        [python, "graphql-cop.py", "-t", url, "-o", "json"],
        cwd=checkout,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=COP_TIMEOUT_S,
    )
    try:
        told = json.loads(ended.stdout)
    except ValueError:
        said = (ended.stderr or ended.stdout).strip().splitlines()[-3:]
        raise ValueError(f"graphql-cop says nothing of use: {' | '.join(said)}") from None
    return len(told), [finding["title"] for finding in told if finding["result"]]
