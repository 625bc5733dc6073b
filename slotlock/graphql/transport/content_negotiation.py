"""Which media type a client would rather have (RFC 9110, 12.5.1)."""

from collections.abc import Sequence
from functools import lru_cache

MAX_MEDIA_RANGES = 20


@lru_cache(maxsize=256)
def negotiate(accept: str, offered: Sequence[str]) -> str | None:
    """The offered type that weighs most for the client; of equals the first. None: none will do."""
    ranges = [
        _parse_media_range(text) for text in accept.split(",")[:MAX_MEDIA_RANGES] if text.strip()
    ]
    weights = [(_weight(ranges, media_type), -i) for i, media_type in enumerate(offered)]
    weight, index = max(weights)
    return offered[-index] if weight > 0 else None


@lru_cache(maxsize=256)
def names_explicitly(accept: str, offered: Sequence[str]) -> bool:
    """Whether the client asks for one of these types by its name, and not for whatever there is."""
    ranges = dict(_parse_media_range(text) for text in accept.split(",")[:MAX_MEDIA_RANGES])
    return any(ranges.get(media_type, 0.0) > 0 for media_type in offered)


def _parse_media_range(text: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = min(max(float(value), 0.0), 1.0)
            except ValueError:
                weight = 0.0
    return media_range, weight


def _weight(ranges: list[tuple[str, float]], media_type: str) -> float:
    # The most specific range that matches decides, whatever its weight.
    for wanted in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        weights = [weight for media_range, weight in ranges if media_range == wanted]
        if weights:
            return max(weights)
    return 0.0
