"""Content negotiation by the `Accept` header (RFC 9110, 12.5.1), and the weights of others."""

from collections.abc import Sequence
from functools import lru_cache

MAX_MEDIA_RANGES = 20


@lru_cache(maxsize=256)
def negotiate(accept: str, offered: Sequence[str]) -> str | None:
    """Return the offered type that the client prefers; the first of equals; None if none fits."""
    ranges = [parse_weighted(text) for text in accept.split(",")[:MAX_MEDIA_RANGES] if text.strip()]
    weights = [(_weight(ranges, media_type), -i) for i, media_type in enumerate(offered)]
    weight, index = max(weights)
    return offered[-index] if weight > 0 else None


@lru_cache(maxsize=256)
def names_explicitly(accept: str, offered: Sequence[str]) -> bool:
    """Return whether the header names one of these types, as opposed to `*/*`."""
    ranges = dict(parse_weighted(text) for text in accept.split(",")[:MAX_MEDIA_RANGES])
    return any(ranges.get(media_type, 0.0) > 0 for media_type in offered)


def parse_weighted(text: str) -> tuple[str, float]:
    """Return a media range or a language in lower case, and its weight from 0 to 1 (12.4.2)."""
    accepted, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = min(max(float(value), 0.0), 1.0)
            except ValueError:
                weight = 0.0
    return accepted, weight


def _weight(ranges: list[tuple[str, float]], media_type: str) -> float:
    # The most specific range that matches decides, even if another has a greater weight.
    for candidate in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        weights = [weight for media_range, weight in ranges if media_range == candidate]
        if weights:
            return max(weights)
    return 0.0
