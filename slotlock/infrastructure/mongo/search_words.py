"""The words under which slots and users are found."""

import re

from bson.regex import Regex

from slotlock.domain.shared.text import normalize_nfc
from slotlock.infrastructure.mongo.client import Document

MAX_SEARCH_WORDS = 5


def search_words(text: str) -> list[str]:
    """Return the words of a text as documents store them: folded, sorted, each once."""
    return sorted(set(re.findall(r"\w+", normalize_nfc(text).casefold())))


def search_query(text: str) -> Document:
    """Return the condition for documents with words that begin as the words of the text.

    Only the first five words count. The prefixes are anchored, so that an index serves them. A
    compiled pattern of Python has the flag `u`, for which MongoDB would scan the whole index.
    """
    # MongoDB looks the first one up in the index. The longest word is likely the rarest.
    prefixes = sorted(search_words(text)[:MAX_SEARCH_WORDS], key=len, reverse=True)
    return {"searchWords": {"$all": [Regex(f"^{prefix}") for prefix in prefixes]}}
