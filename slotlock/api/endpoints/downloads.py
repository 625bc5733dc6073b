"""The names of downloaded files, the separator of those in CSV, and what a client has of them."""

import re
import unicodedata
from operator import itemgetter
from urllib.parse import quote

from starlette.requests import Request

from slotlock.domain.reports.export_formats import CsvSeparator
from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.text import normalize_nfc
from slotlock.graphql.transport.content_negotiation import parse_weighted
from slotlock.graphql.transport.http_messages import HttpError

# With four bytes for each character, the name fits into the 255 bytes of a file system.
MAX_SUBJECT_LENGTH = 50
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
# Excel separates cells as the operating system does: by semicolons where the decimal sign is a
# comma. These are the languages with a decimal comma (CLDR), as primary subtags.
_SEMICOLON_LANGUAGES = """
    af az be bg bs ca cs da de el es et eu fi fo fr gl hr hu hy id is it ka kk ky lb lt lv mk nb nl
    nn no pl pt ro ru sk sl sq sr sv tr uk uz vi
"""
SEMICOLON_LANGUAGES = frozenset(_SEMICOLON_LANGUAGES.split())
# In these regions, Spanish has a decimal point.
_COMMA_REGIONS = "419 bz cu do gt hn mx ni pa pe pr sv us"
COMMA_REGIONS = frozenset(_COMMA_REGIONS.split())


def content_disposition(
    subject: str, ending: str, *, plain_ending: str = "", inline: bool = False
) -> str:
    """Return the header of a file that is named after its subject, a text that users wrote.

    `ending` is plain, such as `roster-2026-11-26.csv`, or there is a plain one, too. A browser
    without `filename*` (RFC 6266) gets that, and the letters of the subject that ASCII has. No
    other character reaches the header.
    """
    # Letters, marks and digits. A pattern would take the vowels of Hindi or Thai for punctuation.
    letters = [
        each if unicodedata.category(each)[0] in "LMN" else " "
        for each in normalize_nfc(subject).lower()
    ]
    name = _join("-".join("".join(letters).split()), ending)
    plain_name = _join(_NOT_PLAIN.sub("-", fold(subject)).strip("-"), plain_ending or ending)
    header = f'{"inline" if inline else "attachment"}; filename="{plain_name}"'
    return header if name == plain_name else f"{header}; filename*=UTF-8''{quote(name, safe='')}"


def _join(slug: str, ending: str) -> str:
    shortened = slug[:MAX_SUBJECT_LENGTH].rstrip("-")
    return f"{shortened}-{ending}" if shortened else ending


def choose_separator(parameter: str | None, accept_language: str | None) -> CsvSeparator:
    """Return the separator that a request names, or that of its preferred language.

    Raises:
        HttpError: 400 for an unknown name.
    """
    if parameter is None:
        return _separator_of(next(iter(preferred_languages(accept_language)), ""))
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


def has_etag(request: Request, etag: str) -> bool:
    """Return whether the client has this version of a file.

    Proxies that compress mark the tag as weak; a weak comparison ignores that (RFC 9110, 13.1.2).
    """
    if_none_match = request.headers.get("if-none-match", "")
    known_tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in known_tags or if_none_match.strip() == "*"


def accepts_gzip(request: Request) -> bool:
    """Return whether the client reads gzip."""
    accepted = request.headers.get("accept-encoding", "")
    return dict(map(parse_weighted, accepted.split(","))).get("gzip", 0) > 0


def preferred_languages(accept_language: str | None) -> list[str]:
    """Return the language tags by weight (RFC 9110, 12.5.4), in lower case."""
    weighted = [parse_weighted(text) for text in (accept_language or "").split(",")]
    named = [each for each in weighted if each[0] not in ("", "*") and each[1] > 0]
    return [tag for tag, _ in sorted(named, key=itemgetter(1), reverse=True)]
