"""The words under which slots and users are found, as documents store them.

    {searchWords: [mark of the folding, word, ...]}

The mark tells that this version wrote the words. A process of an older version replaces the array,
and with it the mark, so that an index on its first element finds what is to be written again.
"""

from bson.regex import Regex

from slotlock.domain.shared.folding import query_words, search_words
from slotlock.infrastructure.mongo.client import Document

# Change it with the folding, to a greater text, and the name of `foldedName`, which resources store
# without a mark. It is that of `sortName` of users, too. No word contains the sign, and every word
# is greater than AFTER_MARKS.
FOLDING_MARK, AFTER_MARKS = "#5", "$"
# Without words, with a smaller mark, or without a mark. Two versions that each replace the words of
# the other would never end.
HAS_OUTDATED_WORDS: Document = {
    "$or": [
        {"searchWords.0": {"$not": {"$gte": FOLDING_MARK}}},
        {"searchWords.0": {"$gte": AFTER_MARKS}},
    ]
}
# The index that finds them.
FOLDING_INDEX: tuple[list[tuple[str, int]], Document] = ([("searchWords.0", 1)], {})


def to_stored_words(text: str) -> list[str]:
    """Return the words of a text, with the mark, as documents store them."""
    return [FOLDING_MARK, *search_words(text)]


def search_query(text: str) -> Document:
    """Return the condition for documents with words that begin as the words of the text.

    The prefixes are anchored, so that an index serves them: the first is looked up. A compiled
    pattern of Python has the flag `u`, for which MongoDB would scan the whole index.
    """
    return {"searchWords": {"$all": [Regex(f"^{prefix}") for prefix in query_words(text)]}}
