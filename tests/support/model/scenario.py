"""Acts as a test writes them down by hand, in a play that it leads itself."""

from tests.support.model.checker import ModelChecker
from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.service_pair import ServicePair


class ModelScenario(ModelChecker):
    """A play whose acts are told person by person: 0 to 4 are members, 5 organises."""

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
        """Something somebody asks for."""
        whom = caller_index if user_index is None and kind == "book" else user_index
        act = PlannedOperation(
            kind,
            self.new_token(),
            self.user_ids[caller_index],
            caller_index == 5,
            slot_id=slot_id,
            user_id="" if whom is None else self.user_ids[whom],
        )
        return PlannedOperation(**{**vars(act), **fields})

    def perform(
        self, kind: str, caller_index: int, slot_id: str = "", **fields: object
    ) -> NormalizedOutcome:
        """Ask for it alone, and compare."""
        return self.run(self.operation(kind, caller_index, slot_id, **fields))  # type: ignore[arg-type]

    def book(self, caller_index: int, slot_id: str, **fields: object) -> str:
        """The token of a booking that is made."""
        act = self.operation("book", caller_index, slot_id, **fields)  # type: ignore[arg-type]
        assert self.run(act)[0] == "Booked"
        return act.token
