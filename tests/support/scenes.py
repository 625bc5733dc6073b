"""Acts as a test writes them down by hand, in a play that it leads itself."""

from tests.support.acts import Act, Answer
from tests.support.desks import House
from tests.support.play import Play


class Scene(Play):
    """A play whose acts are told person by person: 0 to 4 are members, 5 organises."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.people = [str(caller.user_id) for caller in house.people]

    def act(
        self, verb: str, by: int, slot: str = "", *, person: int | None = None, **more: object
    ) -> Act:
        """Something somebody asks for."""
        whom = by if person is None and verb == "book" else person
        act = Act(
            verb,
            self.new_token(),
            self.people[by],
            by == 5,
            slot=slot,
            person="" if whom is None else self.people[whom],
        )
        return Act(**{**vars(act), **more})

    def ask(self, verb: str, by: int, slot: str = "", **more: object) -> Answer:
        """Ask for it alone, and compare."""
        return self.do(self.act(verb, by, slot, **more))  # type: ignore[arg-type]

    def book(self, by: int, slot: str, **more: object) -> str:
        """The token of a booking that is made."""
        act = self.act("book", by, slot, **more)  # type: ignore[arg-type]
        assert self.do(act)[0] == "Booked"
        return act.token
