"""Names of downloaded files that a reader recognizes."""

import re
import unicodedata
from urllib.parse import quote

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.text import normalize_nfc

# With four bytes for each character, the name fits into the 255 bytes of a file system.
MAX_SUBJECT_LENGTH = 50
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


def content_disposition(subject: str, ending: str, *, inline: bool = False) -> str:
    """Return the header of a file that is named after its subject, a text that users wrote.

    `ending` is plain, such as `roster-2026-11-26.csv`. A browser without `filename*` (RFC 6266)
    gets the letters of the subject that ASCII has. No other character reaches the header.
    """
    # Letters, marks and digits. A pattern would take the vowels of Hindi or Thai for punctuation.
    letters = [
        each if unicodedata.category(each)[0] in "LMN" else " "
        for each in normalize_nfc(subject).lower()
    ]
    name = _join("-".join("".join(letters).split()), ending)
    plain_name = _join(_NOT_PLAIN.sub("-", fold(subject)).strip("-"), ending)
    header = f'{"inline" if inline else "attachment"}; filename="{plain_name}"'
    return header if name == plain_name else f"{header}; filename*=UTF-8''{quote(name, safe='')}"


def _join(slug: str, ending: str) -> str:
    shortened = slug[:MAX_SUBJECT_LENGTH].rstrip("-")
    return f"{shortened}-{ending}" if shortened else ending
