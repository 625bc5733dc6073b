"""Enums whose members say what they mean, to clients as well."""

from enum import StrEnum
from typing import Self


class DescribedEnum(StrEnum):
    """An enum that the schema contains, whose docstring and descriptions are its texts there.

    A member is a value and its description; a remark for developers is a comment. An enum whose
    members say more takes that in its `__init__`.
    """

    description: str

    def __new__(cls, value: str, description: str = "", *_: object) -> Self:
        """Return a member. Type checkers take a call that finds one by its value for this one."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member
