"""What counts as a server's error: more than a 5xx, as GraphQL tells of most failures in a 200."""

import json
from dataclasses import dataclass

SERVER_ERROR_CODES = frozenset({None, "INTERNAL", "RATE_LIMITED"})


@dataclass(frozen=True, slots=True)
class Judgment:
    """What is wrong with an answer, if anything, and whether its field was resolved."""

    problem: str | None
    executed: bool = False


def judge(status: int, body: bytes, *, stays_signed_in: bool) -> Judgment:
    """One answer; who stays signed in is never told to sign in, or the run proves little."""
    if status >= 500:
        return Judgment(f"status {status}")
    try:
        answer = json.loads(body)
    except ValueError:
        return Judgment("an answer that is not JSON")
    errors = answer.get("errors", [])
    codes = {error.get("extensions", {}).get("code") for error in errors}
    if codes & SERVER_ERROR_CODES:
        return Judgment(f"{', '.join(map(str, codes))}: {errors[0]['message']}")
    if stays_signed_in and "UNAUTHENTICATED" in codes:
        return Judgment("who was signed in is signed out")
    values = (answer.get("data") or {}).values()
    return Judgment(None, any(value is not None for value in values))
