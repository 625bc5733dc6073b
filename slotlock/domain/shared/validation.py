"""Invalid input: which fields the caller must correct, and why.

A `validate_*` function returns the problem as a sentence for the user who filled in the field, or
None when the value is valid.
"""

from slotlock.domain.shared.values import value_object

INVALID_EMAIL = "This is not an e-mail address."


@value_object
class FieldProblem:
    """The problem with one input field, as a sentence for the user who filled it in."""

    field: str
    message: str


@value_object
class InvalidInput:
    """At least one field is invalid; nothing was changed."""

    problems: tuple[FieldProblem, ...]
