"""Decides which responses are server errors; GraphQL reports most failures with status 200."""

import json
from dataclasses import dataclass

SERVER_ERROR_CODES = frozenset({None, "INTERNAL", "RATE_LIMITED"})


@dataclass(frozen=True, slots=True)
class Judgment:
    """The problem of a response, if any, and whether its root field was executed."""

    problem: str | None
    executed: bool = False


def judge(status: int, body: bytes, *, stays_signed_in: bool) -> Judgment:
    """Judge one response; if the user stays signed in, UNAUTHENTICATED is a problem."""
    if status >= 500:
        return Judgment(f"status {status}")
    try:
        response = json.loads(body)
    except ValueError:
        return Judgment("a response that is not JSON")
    errors = response.get("errors", [])
    codes = {error.get("extensions", {}).get("code") for error in errors}
    if codes & SERVER_ERROR_CODES:
        return Judgment(f"{', '.join(map(str, codes))}: {errors[0]['message']}")
    if stays_signed_in and "UNAUTHENTICATED" in codes:
        return Judgment("the session has ended")
    values = (response.get("data") or {}).values()
    return Judgment(None, any(value is not None for value in values))
