"""What counts as a server's error: more than a 5xx, as GraphQL tells of most failures in a 200."""

import json
from dataclasses import dataclass

OURS = frozenset({None, "INTERNAL", "RATE_LIMITED"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with an answer, if anything, and whether its field was resolved."""

    problem: str | None
    executed: bool = False


def judge(status: int, body: bytes, *, stays_signed_in: bool) -> Judgement:
    """One answer; who stays signed in is never told to sign in, or the run proves little."""
    if status >= 500:
        return Judgement(f"status {status}")
    try:
        answer = json.loads(body)
    except ValueError:
        return Judgement("an answer that is not JSON")
    errors = answer.get("errors", [])
    codes = {error.get("extensions", {}).get("code") for error in errors}
    if codes & OURS:
        return Judgement(f"{', '.join(map(str, codes))}: {errors[0]['message']}")
    if stays_signed_in and "UNAUTHENTICATED" in codes:
        return Judgement("who was signed in is signed out")
    values = (answer.get("data") or {}).values()
    return Judgement(None, any(value is not None for value in values))
