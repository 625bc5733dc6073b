"""Declares settings, and converts the texts of their variables.

Every command reads the settings first, and pydantic takes longer to import than most of them work.
"""

import operator
from collections.abc import Callable
from dataclasses import Field, dataclass, field
from enum import StrEnum
from types import UnionType
from typing import Any, Literal, get_args, get_origin

BOOLEANS = {"1": True, "on": True, "true": True, "yes": True} | {
    "0": False, "off": False, "false": False, "no": False
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SecretStr:
    """A text that no message and no log shows."""

    _text: str = field(repr=False)

    def get_secret_value(self) -> str:
        """Return the text."""
        return self._text


def setting(
    *,
    default: Any,
    description: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    check: Callable[[Any], Any] | None = None,
) -> Any:
    """Declare a setting, the bounds of a number, and the check of its value.

    The check returns the value as it is used, and raises ValueError with the reason against it.
    """
    bounds = (
        (ge, operator.ge, "greater than or equal to"),
        (gt, operator.gt, "greater than"),
        (le, operator.le, "less than or equal to"),
    )
    metadata = {"description": description, "bounds": bounds, "check": check}
    return field(default=default, metadata=metadata)


def convert(text: str, declared: Field[Any], *, checked: bool) -> Any:
    """Return the value of a text. Raises ValueError with the reason if it is invalid."""
    value = _convert(text, declared.type)
    for bound, is_within, relation in declared.metadata["bounds"]:
        if bound is not None and not is_within(value, bound):
            raise ValueError(f"must be {relation} {bound}")
    check = declared.metadata["check"]
    return check(value) if checked and check is not None else value


def _convert(text: str, type_: Any) -> Any:
    if isinstance(type_, UnionType):  # with None, for a setting without a default
        type_ = get_args(type_)[0]
    if get_origin(type_) is tuple:
        parts = filter(None, map(str.strip, text.split(",")))
        return tuple(_convert(part, get_args(type_)[0]) for part in parts)
    if get_origin(type_) is Literal:
        return _choose(text, get_args(type_))
    if issubclass(type_, StrEnum):
        return type_(_choose(text, [each.value for each in type_]))
    if type_ is bool:
        if text.lower() not in BOOLEANS:
            raise ValueError("must be a boolean: on or off")
        return BOOLEANS[text.lower()]
    try:
        return type_(text)
    except ValueError:
        raise ValueError(f"must be {'an integer' if type_ is int else 'a number'}") from None


def _choose(text: str, choices: Any) -> str:
    if text not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"must be {', '.join(others)} or {last}")
    return text
