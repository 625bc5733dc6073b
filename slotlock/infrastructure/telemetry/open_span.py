"""A span in progress, as the parts of slotlock use it."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any

# The span of a caller whose work others do as well. Only `opentelemetry_spans` knows its type.
Origin = Any


class OpenSpan:
    """A span in progress; this class itself is the span that is not recorded."""

    def __enter__(self) -> "OpenSpan":
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do nothing."""

    def join(self, origins: Iterable[Origin]) -> None:
        """Link this span and those of further callers with each other."""

    def set_status_code(self, status: int) -> None:
        """Record the status of the HTTP response."""


NO_SPAN = OpenSpan()
