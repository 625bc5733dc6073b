"""The reference page of all settings, as `slotlock settings` prints it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.limits import LimitSettings
from slotlock.api.settings.settings import DECLARATIONS, env_name

KINDS = {
    bool: "`on` or `off`",
    int: "a whole number",
    float: "a number",
    str: "a text",
    SecretStr: "a secret, which no log shows",
    Path: "a path",
}
BOUNDS = {"greater than or equal to": "at least", "less than or equal to": "at most"}


def settings_page(readers: Callable[[str], Sequence[str]]) -> str:
    """Return the reference page of all settings as Markdown, one sentence a line.

    `readers` returns the commands that read a setting.
    """
    lines = [
        "# Settings",
        "",
        "slotlock reads its settings from environment variables.",
        "A misspelled name is an error, which names the nearest setting.",
        "Each process reads only what it uses; [commands](commands.md) describes all of them.",
    ]
    limits = {each.name for each in fields(LimitSettings)}
    for name, declared in sorted(DECLARATIONS.items(), key=lambda item: item[0] in limits):
        read_by = ", ".join(f"`{each}`" for each in readers(name))
        lines += ["", f"## `{env_name(name)}`", ""]
        lines.append(f"- Value: {_value(declared)}; default: {_default(declared.default)}")
        lines += [f"- Read by: {read_by}", ""]
        lines += re.split(r"(?<=\.) ", declared.metadata["description"])
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if value in (None, ()):
        return "none"
    return f"`{('off', 'on')[value] if isinstance(value, bool) else value}`"


def _value(declared: Field[Any]) -> str:
    limits = {
        relation: limit for limit, _, relation in declared.metadata["bounds"] if limit is not None
    }
    least, most = (limits.get(relation) for relation in BOUNDS)
    if least is not None and most is not None:
        return f"{_kind(declared.type)} from {least:,} to {most:,}"
    bounds = [f"{BOUNDS.get(name, name)} {limit:,}" for name, limit in limits.items()]
    return ", ".join((_kind(declared.type), *bounds))


def _kind(type_: Any) -> str:
    if isinstance(type_, UnionType):  # with None, for a setting without a default
        type_ = get_args(type_)[0]
    if get_origin(type_) is tuple:
        return f"{_kind(get_args(type_)[0])}, or several with commas between them"
    choices = get_args(type_) if get_origin(type_) is Literal else ()
    if not choices and issubclass(type_, StrEnum):
        choices = tuple(type_)
    if not choices:
        return KINDS[type_]
    *others, last = (f"`{each}`" for each in choices)
    return f"{', '.join(others)} or {last}"
