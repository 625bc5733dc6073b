"""Invalid input: which fields the caller must correct, and why.

A `validate_*` function returns the problem of a value, or None when the value is valid.
"""

from collections.abc import Mapping

from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.problems import Problem


@outcome
class FieldProblem:
    """The problem with one field of an input."""

    field: str = shown("The name of the field.")
    message: Problem = shown("The problem as a sentence in English.")

    @classmethod
    def all_of(cls, problems: Mapping[str, Problem | None]) -> tuple["FieldProblem", ...]:
        """Return the problems of the fields that have one."""
        return tuple(cls(field, problem) for field, problem in problems.items() if problem)


@refusal(message="{sentences}")
class InvalidInput:
    """At least one field of the input is invalid. Nothing was changed."""

    problems: tuple[FieldProblem, ...] = shown(
        "Every invalid field with its problem.", name="fields"
    )

    @property
    def sentences(self) -> str:
        """The problems as one text."""
        return " ".join(f"{each.field}: {each.message}" for each in self.problems)
