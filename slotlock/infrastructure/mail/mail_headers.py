"""The header lines of a mail, which hold any text as it is (RFC 5322, 2047).

Every header passes here. A text that is not plain is written in encoded words, so that it can
neither end its line, nor be read as an encoded word or an address.
"""

import re
from binascii import b2a_base64

# RFC 2047, 2: an encoded word has at most 75 characters, and its line at most 76.
LINE_LENGTH = 76
WORD_FRAME_LENGTH = len("=?utf-8?q??=")

# A fold keeps one blank between two words, and no parser reads such a text in another way.
_PLAIN_TEXT = re.compile(r"(?:[!-~]+(?: [!-~]+)*)?")
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+")
_ESCAPED, _ESCAPE = re.compile(r'["\\]'), r"\\\g<0>"
# An atom, with other letters too (RFC 6532), or a text in quotes; then an ASCII domain.
_ATOM_CHARACTER = r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|(?!\s)[\u00a0-\ud7ff\ue000-\U0010ffff])"
_ADDRESS = re.compile(
    rf'(?:{_ATOM_CHARACTER}+(?:\.{_ATOM_CHARACTER}+)*|"[ !#-\[\]-~]+")'
    r"@(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[A-Za-z0-9.:]+\])"
)
_CONTROL_CHARACTER = re.compile("\r\n|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
BASE64_GROUP = (3, 4)  # bytes, and their characters

# Each byte in the encoding "Q"; these letters are safe in names as well (RFC 2047, 5).
_QUOTED = [
    chr(byte) if re.fullmatch(r"[A-Za-z0-9!*+/-]", chr(byte)) else f"={byte:02X}"
    for byte in range(256)
]
_QUOTED[ord(" ")] = "_"


def write_value(field: str, value: str) -> str:
    """Return the line of a header that the program words, such as a date. It is never folded.

    Mail programs read some only on one line (RFC 2369, 2). Raises: ValueError.
    """
    if not re.fullmatch("[ -~]{0,900}", value):
        raise ValueError(f"{value[:100]!r} is no value of {field}")
    return f"{field}: {value}\r\n"


def write_text(field: str, text: str) -> str:
    """Return the lines of a header with a text that somebody wrote.

    A control character or an end of a line becomes a blank, and half a character U+FFFD.
    """
    text, width = _without_control_characters(text), _width(field)
    if _is_plain(text) and max(map(len, text.split(" "))) <= width:
        return _fold(field, text.split(" "))
    return _fold(field, _encoded_words(text, width))


def write_address(field: str, name: str, address: str) -> str:
    """Return the lines of a header with one address, and a name that somebody wrote.

    The name is like a text, without blanks around it. Raises: ValueError if it is no address, or
    its domain is not ASCII.
    """
    if not is_address(address):
        raise ValueError(f"{address!r} is not an email address")
    name = _without_control_characters(name).strip()
    return _fold(field, [*_phrase(name, _width(field)), f"<{address}>"] if name else [address])


def is_address(text: str) -> bool:
    """Return whether a header can hold this address as it is."""
    return _ADDRESS.fullmatch(text) is not None


def _width(field: str) -> int:
    """Return how long the first word of a header can be."""
    return LINE_LENGTH - len(f"{field}: ")


def _fold(field: str, words: list[str]) -> str:
    lines, line = [], f"{field}: {words[0]}"
    for word in words[1:]:
        if len(line) + 1 + len(word) > LINE_LENGTH:
            lines.append(line)
            line = ""
        line += f" {word}"
    return "\r\n".join([*lines, line, ""])


def _without_control_characters(text: str) -> str:
    return _SURROGATE.sub("\ufffd", _CONTROL_CHARACTER.sub(" ", text))


def _is_plain(text: str) -> bool:
    return _PLAIN_TEXT.fullmatch(text) is not None and "=?" not in text


def _phrase(name: str, width: int) -> list[str]:
    """Return the words of a name: atoms, a text in quotes, or encoded words."""
    if _is_plain(name):
        words = name.split(" ")
        if not all(map(_ATOM.fullmatch, words)):
            words = f'"{_ESCAPED.sub(_ESCAPE, name)}"'.split(" ")
        if max(map(len, words)) <= width:
            return words
    return _encoded_words(name, width)


def _encoded_words(text: str, width: int) -> list[str]:
    """Return a text as words of at most `width` characters, each with whole characters of it."""
    room, (byte_count, group_length) = width - WORD_FRAME_LENGTH, BASE64_GROUP
    is_quoted = len(_quoted(text)) * byte_count <= len(text.encode()) * group_length
    if not is_quoted:
        room = room // group_length * byte_count
    words, start = [], 0
    while start < len(text):
        end, length = start, 0
        while end < len(text):
            length += len(_quoted(text[end]) if is_quoted else text[end].encode())
            if length > room:
                # Some parsers read a blank between the encoded words of a name: it breaks no word.
                end = text.rfind(" ", start, end) + 1 or end
                break
            end += 1
        words.append(text[start:end])
        start = end
    if is_quoted:
        return [f"=?utf-8?q?{_quoted(word)}?=" for word in words]
    return [f"=?utf-8?b?{b2a_base64(word.encode(), newline=False).decode()}?=" for word in words]


def _quoted(text: str) -> str:
    return "".join([_QUOTED[byte] for byte in text.encode()])
