"""Model checks of operations that a test lists by hand."""

from dataclasses import replace

from tests.support.model.checker import ModelChecker
from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.service_pair import ServicePair


class ModelScenario(ModelChecker):
    """A model checker with callers by index: 0 to 4 are members, 5 is the organizer."""

    def __init__(self, pair: ServicePair) -> None:
        super().__init__(pair)
        self.user_ids = [str(caller.user_id) for caller in pair.callers]

    def operation(
        self,
        kind: str,
        caller_index: int,
        slot_id: str = "",
        *,
        user_index: int | None = None,
        **fields: object,
    ) -> PlannedOperation:
        """Plan an operation. A booking is for the caller unless `user_index` is given."""
        user = caller_index if user_index is None and kind == "book" else user_index
        operation = PlannedOperation(
            kind,
            self.new_token(),
            self.user_ids[caller_index],
            caller_index == 5,
            slot_id=slot_id,
            user_id="" if user is None else self.user_ids[user],
        )
        return replace(operation, **fields)  # type: ignore[arg-type]

    def perform(
        self, kind: str, caller_index: int, slot_id: str = "", **fields: object
    ) -> NormalizedOutcome:
        """Run an operation alone and return its outcome."""
        return self.run(self.operation(kind, caller_index, slot_id, **fields))  # type: ignore[arg-type]

    def book(self, caller_index: int, slot_id: str, **fields: object) -> str:
        """Book a place, which must succeed, and return the token of the booking."""
        operation = self.operation("book", caller_index, slot_id, **fields)  # type: ignore[arg-type]
        assert self.run(operation)[0] == "Booked"
        return operation.token
