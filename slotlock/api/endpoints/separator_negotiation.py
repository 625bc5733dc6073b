"""The separator of a CSV file by the parameter or the language of a request.

Excel separates cells as the operating system does: by semicolons where the decimal sign is a comma.
"""

from operator import itemgetter

from slotlock.domain.reports.exports import CsvSeparator
from slotlock.graphql.transport.content_negotiation import parse_weighted
from slotlock.graphql.transport.http_requests import HttpError

# Languages with a decimal comma (CLDR), as primary subtags.
_SEMICOLON_LANGUAGES = """
    af az be bg bs ca cs da de el es et eu fi fo fr gl hr hu hy id is it ka kk ky lb lt lv mk nb nl
    nn no pl pt ro ru sk sl sq sr sv tr uk uz vi
"""
SEMICOLON_LANGUAGES = frozenset(_SEMICOLON_LANGUAGES.split())
# In these regions, Spanish has a decimal point.
_COMMA_REGIONS = "419 bz cu do gt hn mx ni pa pe pr sv us"
COMMA_REGIONS = frozenset(_COMMA_REGIONS.split())


def choose_separator(parameter: str | None, accept_language: str | None) -> CsvSeparator:
    """Return the separator that a request names, or that of its preferred language.

    Raises:
        HttpError: 400 for an unknown name.
    """
    if parameter is None:
        return _separator_of(_preferred_language(accept_language or ""))
    try:
        return CsvSeparator(parameter)
    except ValueError:
        names = " or ".join(CsvSeparator)
        raise HttpError(400, f"`separator` is {names}.") from None


def _separator_of(language: str) -> CsvSeparator:
    primary, *others = language.split("-")
    has_decimal_comma = primary in SEMICOLON_LANGUAGES and not (
        primary == "es" and COMMA_REGIONS.intersection(others)
    )
    return CsvSeparator.SEMICOLON if has_decimal_comma else CsvSeparator.COMMA


def _preferred_language(accept_language: str) -> str:
    """Return the first language tag with the greatest weight (RFC 9110, 12.5.4), in lower case."""
    weighted = [parse_weighted(text) for text in accept_language.split(",")]
    named = [each for each in weighted if each[0] not in ("", "*") and each[1] > 0]
    return max(named, key=itemgetter(1), default=("", 0.0))[0]
