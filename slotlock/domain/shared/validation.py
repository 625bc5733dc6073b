"""Invalid input: which fields the caller must correct, and why.

A `validate_*` function returns the problem as a sentence for the user who filled in the field, or
None when the value is valid.
"""

from dataclasses import dataclass

INVALID_EMAIL = "This is not an e-mail address."


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """The problem with one input field, as a sentence for the user who filled it in."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """At least one field is invalid; nothing was changed."""

    problems: tuple[FieldProblem, ...]
