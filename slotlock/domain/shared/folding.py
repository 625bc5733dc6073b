"""One folding for search and for order: texts that fold to the same are the same to a reader.

It is NFKC with case folding, without accents, as `icu_folding` of Elasticsearch does it. That
replaces some letters that have no decomposition, and folds the digits of all scripts to 0 to 9.
Unlike ICU, it retains the vowels of Thai, Lao and Tibetan, the marks that voice Japanese kana or
silence a vowel of Indian scripts, and the long vowel mark of Japanese. All apostrophes are one.

A text is found by the beginnings of its words, and of the parts beside an apostrophe. Scripts
without blanks have no words that a program
could find, and Koreans search for parts of words: of these, a text is found from any character on.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, islice

from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH

# A run of characters without blanks is stored from each of its characters on, so many at a time.
UNBROKEN_LENGTH = 8
# Of one text. Only characters that decompose into many others reach it.
MAX_STORED_WORDS = 500
MAX_QUERY_WORDS = 20
# An import folds the names of 10,000 users.
CACHED_CHARACTERS = 4_096

# Of names and elisions: the typewriter's, quotation marks, primes, letters that stand for one
# (Hawaiian, Uzbek, Ukrainian, Arabic in Latin letters), and the signs of Armenian and Hebrew.
APOSTROPHE = "'"
_APOSTROPHES = str.maketrans(
    dict.fromkeys(
        "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u055a\u05f3\u2018\u2019\u201b\u2032\ua78b\ua78c"
        "\uff07\uff40",
        APOSTROPHE,
    )
)
# From DiacriticFolding.txt of Lucene: letters in use today that do not decompose.
_LETTERS = str.maketrans(
    dict(zip("ðøđħıĸłŋŧƀəɓɗƙƴɛɔǝ", "dodhiqlntbabdkyeoe", strict=True))
    | {"æ": "ae", "œ": "oe", "þ": "th"}
    | {"ґ": "г", "ғ": "г", "қ": "к", "ң": "н"}  # noqa: RUF001
    # Of Arabic and Persian keyboards: tatweel, teh marbuta, alef maksura, kaf, yeh.
    | {"\u0640": "", "\u0629": "\u0647", "\u0649": "\u064a"}
    | {"\u06a9": "\u0643", "\u06cc": "\u064a"}
    | _APOSTROPHES
)
# The combining classes of marks that are no accents: a letter with one is another letter. They
# voice kana, silence a vowel, or are vowels of Thai, Lao and Tibetan.
_LETTER_MARKS = {8, 9, 103, 118, 129, 130, 132}
# Characters that choose a form of the one before them.
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Thai and Lao, Myanmar, Hangul, Khmer, the Tai scripts, and everything of China and Japan.
_UNBROKEN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\ua4cf"
    "\ua9e0-\ua9ff\uaa60-\uaadf\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


def fold(text: str) -> str:
    """Return a text without capitals, accents and variants of characters.

    No valid text has more than 1,000 characters; the rest of a longer one is left out.
    """
    # An acute accent without a letter has a decomposition with a blank.
    text = text[:MAX_NORMALIZED_LENGTH].translate(_APOSTROPHES)
    if text.isascii():
        return text.lower()
    # Some characters have a decomposition with capitals, and case folding composes some.
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    folded = "".join(map(_fold_character, decomposed)).translate(_LETTERS)
    return unicodedata.normalize("NFC", folded)  # for the syllables of Hangul


def search_key(text: str) -> str:
    """Return the folded text without apostrophes, for a search of parts of it."""
    return fold(text).replace(APOSTROPHE, "")


def search_words(text: str) -> list[str]:
    """Return the words by whose beginnings a text is found, sorted, each once, at most 500."""
    words = (
        word
        for run, is_unbroken in _runs(text)
        for word in (_from_each_character(run) if is_unbroken else _with_parts(run))
    )
    return sorted(islice(dict.fromkeys(words), MAX_STORED_WORDS))


def query_words(text: str) -> list[str]:
    """Return what words of a text must begin with to be found, the longest first, at most 20."""
    words = {
        word
        for run, is_unbroken in _runs(text)
        for word in (_in_pieces(run) if is_unbroken else _with_parts(run)[:1])
    }
    return sorted(words, key=lambda word: (-len(word), word))[:MAX_QUERY_WORDS]


@lru_cache(maxsize=CACHED_CHARACTERS)
def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    # Format characters are invisible, and enclosing marks draw a circle or a key.
    is_ignored = category in {"Cf", "Me"} or _VARIATION_SELECTORS.match(character)
    is_accent = unicodedata.combining(character) not in {0, *_LETTER_MARKS}
    return "" if is_ignored or is_accent else character


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of letters, marks and digits, and whether each is without blanks.

    One with blanks may contain apostrophes.
    """
    for is_unbroken, run in groupby(fold(text), _is_unbroken):
        if is_unbroken is not None:
            yield "".join(run), is_unbroken


@lru_cache(maxsize=CACHED_CHARACTERS)
def _is_unbroken(character: str) -> bool | None:
    """Return whether a character is of a script without blanks; None if it is in no word.

    An emoji is a word of its own, and an apostrophe joins the parts of a word.
    """
    if character == APOSTROPHE:
        return False
    category = unicodedata.category(character)
    if category == "So":
        return True
    return bool(_UNBROKEN.match(character)) if category[0] in "LMN" else None


def _with_parts(run: str) -> list[str]:
    """Return a word without its apostrophes, and its parts: `obrien`, `o` and `brien`."""
    parts = [part for part in run.split(APOSTROPHE) if part]
    return ["".join(parts), *parts] if parts else []


def _from_each_character(run: str) -> Iterator[str]:
    return (run[start : start + UNBROKEN_LENGTH] for start in range(len(run)))


def _in_pieces(run: str) -> Iterator[str]:
    return (run[start : start + UNBROKEN_LENGTH] for start in range(0, len(run), UNBROKEN_LENGTH))
