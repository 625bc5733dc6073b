"""Attributes of a value whose declaration says how they are named, stored and checked.

    hold_cooldown_minutes: int = fact(Number(0, 10_080), default=0)

The checks of inputs, their conversion, the documents and the audit notes follow from this line.
What clients see of an attribute of a booking follows as well, if its declaration has `shown`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields
from types import NoneType
from typing import Any, get_args
from urllib.parse import urlsplit

from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import normalize_line, validate_line

# All characters of a URI (RFC 3986, 2).
_URI = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")


@dataclass(frozen=True, slots=True)
class Number:
    """The numbers from a minimum to a maximum."""

    minimum: int
    maximum: int

    def normalize(self, number: int) -> int:
        """Return the number."""
        return number

    def problem(self, number: int) -> Problem | None:
        """Return the problem with a number, or None."""
        if self.minimum <= number <= self.maximum:
            return None
        return ProblemCode.NOT_IN_RANGE.problem(minimum=self.minimum, maximum=self.maximum)


@dataclass(frozen=True, slots=True)
class Line:
    """The texts of one line with at most so many characters.

    An empty text is None, unless `if_empty` is the problem with it.
    """

    max_length: int
    if_empty: ProblemCode | None = None

    def normalize(self, text: str) -> str | None:
        """Return the text in canonical spelling."""
        return normalize_line(text) or (None if self.if_empty is None else "")

    def problem(self, text: str) -> Problem | None:
        """Return the problem with a text, or None."""
        if not text and self.if_empty is not None:
            return self.if_empty.problem()
        return validate_line(text, self.max_length)


@dataclass(frozen=True, slots=True)
class Link:
    """The addresses of pages, with https, and with at most so many characters.

    An empty text is None.
    """

    max_length: int

    def normalize(self, text: str) -> str | None:
        """Return the text without blanks around it."""
        return normalize_line(text) or None

    def problem(self, text: str) -> Problem | None:
        """Return the problem with a text, or None."""
        if problem := validate_line(text, self.max_length):
            return problem
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            return ProblemCode.INVALID_URL.problem()
        if parts.scheme != "https" or not host:
            return ProblemCode.NOT_HTTPS.problem()
        # A name before the host can imitate another host.
        if not _URI.fullmatch(text) or "@" in parts.netloc:
            return ProblemCode.INVALID_URL.problem()
        return None


@dataclass(frozen=True, slots=True)
class Names:
    """Lists of at most so many names, which are stored in order and each once.

    `check_name` returns the problem with one name.
    """

    maximum: int
    too_many: ProblemCode
    check_name: Callable[[str], Problem | None]

    def normalize(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names in canonical spelling."""
        return tuple(sorted(set(map(normalize_line, names))))

    def problem(self, names: tuple[str, ...]) -> Problem | None:
        """Return the problem with a list of names, or None."""
        if len(names) > self.maximum:
            return self.too_many.problem(maximum=self.maximum)
        return next(filter(None, map(self.check_name, names)), None)


Check = Number | Line | Link | Names


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a value.

    `stored_name` is the field of the document, and `api_name` that of the inputs and of audit
    notes; it is empty for bookkeeping, which has none. An attribute that is not declared has its
    own name everywhere. `shown` is the description in the schema of one whose field there follows.
    """

    name: str
    type: Any
    default: object
    stored_name: str
    api_name: str
    is_declared: bool
    is_fact: bool
    check: Check | None
    shown: str

    @property
    def value_type(self) -> Any:
        """The type of the values that are not None."""
        others = [each for each in get_args(self.type) if each is not NoneType]
        return others[0] if NoneType in get_args(self.type) else self.type

    @property
    def is_nullable(self) -> bool:
        """Whether None is a value of the fact."""
        return self.type is not self.value_type

    def normalize(self, value: Any) -> Any:
        """Return a value of the fact as it is stored."""
        return value if self.check is None or value is None else self.check.normalize(value)

    def problem(self, value: Any) -> Problem | None:
        """Return the problem with a value of the fact, or None."""
        return None if self.check is None or value is None else self.check.problem(value)


def fact(
    check: Check | None = None,
    *,
    default: Any = MISSING,
    shown: str = "",
) -> Any:
    """Declare a number, a time, a member of an enum, a text of one line, a link or names."""
    metadata = {"is_fact": True, "check": check, "shown": shown}
    return field(default=default, metadata=metadata)


def attribute(
    stored_name: str,
    api_name: str = "",
    *,
    default: Any = MISSING,
    shown: str = "",
) -> Any:
    """Declare an attribute with other names than its own, or of another type than a fact."""
    names = {"stored_name": stored_name, "api_name": api_name}
    return field(default=default, metadata={**names, "shown": shown})


def attributes_of(declared_by: type) -> dict[str, Attribute]:
    """Return the attributes of a dataclass by their names."""
    return {each.name: _to_attribute(each) for each in fields(declared_by)}


def camel_case(name: str) -> str:
    """Return the name of an attribute as documents and clients know it, such as `maxBookings`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _to_attribute(declared: Field[Any]) -> Attribute:
    api_name = camel_case(declared.name)
    names = {"stored_name": api_name, "api_name": api_name}
    plain = {"is_declared": bool(declared.metadata), "is_fact": False}
    options = {**names, **plain, "check": None, "shown": "", **declared.metadata}
    return Attribute(declared.name, declared.type, declared.default, **options)
