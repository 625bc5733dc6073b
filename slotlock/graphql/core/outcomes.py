"""What clients see of refusals and outcomes: it follows from their declarations in the domain.

A type that says more than the values of its class is written by hand, and `register_type` makes it
known; `type_of` derives all others. A value of another domain type, such as a booking, is shown as
its capability registers it with `register_value`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

import strawberry
from strawberry.types.field import StrawberryField
from strawberry.types.lazy_type import LazyType

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.schedule import meetings
from slotlock.domain.shared import validation
from slotlock.domain.shared.declare import Declaration, Message, SentId, ShownField, declarations
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.email_addresses import EmailAddress
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.core import ids, scalars
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.shared_types import FieldProblem, Meeting

Outcome = TypeVar("Outcome")
Resolver = Callable[..., Awaitable[object]]


@value_object
class ResultView:
    """The viewer of a result, the slots that its outcome names, and whom the request was for.

    `booked_for` is None if that is not known, as for the tickets of an organizer, or if no message
    needs it.
    """

    viewer: Caller | None
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
    booked_for: UserId | None = None
    # What the viewer sees of these slots, so that the parts of one result show the same slot.
    shown_slots: dict[SlotId, Any] = field(default_factory=dict, compare=False, repr=False)


# Returns what clients see of an outcome.
Presenter = Callable[[Any, ResultView], Any]
# Returns what clients see of a value that an outcome holds.
Convert = Callable[[Any, Any, ResultView], object]


class ShownAs(NamedTuple):
    """The type of a value in the schema, and its conversion; None for one that stays as it is."""

    type: Any
    convert: Convert | None = None


_shown_as: dict[object, ShownAs] = {}
_types: dict[type, type] = {}
_presenters: dict[type, Presenter] = {}


class AsSlot:
    """Stands for the slot of an id, in `register_value`."""


def register_value(domain_type: object, graphql_type: object, convert: Convert | None) -> None:
    """Register what clients see of a type's values in outcomes: `convert(value, outcome, view)`."""
    _shown_as[domain_type] = ShownAs(graphql_type, convert)


def register_type(domain_class: type, graphql_type: type, present: Presenter) -> None:
    """Register a type that is written by hand. Raises TypeError if one was derived already."""
    if _types.setdefault(domain_class, graphql_type) is not graphql_type:
        raise TypeError(f"{domain_class.__name__} is used before its type is registered")
    _presenters[domain_class] = present


def description_of(domain_class: type) -> str:
    """Return the description of a declared class, for a type that is written by hand."""
    return declarations[domain_class].description


def code_and_message(refusal: object, view: ResultView) -> dict[str, Any]:
    """Return the code and the message of a refusal, for a type that is written by hand."""
    declaration = declarations[type(refusal)]
    message = declaration.message and _sentence(declaration.message, refusal, view)
    return {"code": RefusalCode[declaration.code], "message": message}


def type_of(domain_class: type) -> type:
    """Return the type that clients see of a class, which is derived unless it was registered.

    Raises:
        KeyError: the class is not declared, or `RefusalCode` does not have its code.
    """
    if domain_class not in _types:
        _types[domain_class], _presenters[domain_class] = _derive(declarations[domain_class])
    return _types[domain_class]


@dataclass(frozen=True)
class _TypeAbove(LazyType[Any, Any]):
    domain_class: type = object

    def resolve_type(self) -> type:
        return _types[self.domain_class]


def type_above(domain_class: type) -> Any:
    """Return the type that a capability above registers, for a field: the schema looks it up.

    An import of it would make a circle: its own fields have the type with the field.
    """
    return _TypeAbove(domain_class.__name__, __name__, domain_class=domain_class)


def list_of(domain_class: type) -> Any:
    """Return the list of the type of a class, for a field of a type that is written by hand."""
    return list[type_of(domain_class)]  # type: ignore[misc]


def present(outcome: object, view: ResultView) -> Any:
    """Return what clients see of an outcome."""
    presenter = _presenters.get(type(outcome))
    if presenter is None:
        type_of(type(outcome))
        presenter = _presenters[type(outcome)]
    return presenter(outcome, view)


def refuse_id(domain_class: type, sent_id: str) -> Refusal:
    """Refuse an id that names nothing. The only field that clients see is the id as it was sent."""
    (id_field,) = declarations[domain_class].shown_fields
    refusal: Refusal = object.__new__(type_of(domain_class))
    setattr(refusal, id_field.name, sent_id)
    return refusal


class Result(Generic[Outcome]):
    """The union of a mutation: `Result[CheckInOutcome]("CheckInResult", "...")`.

    Its members are the types of the outcomes, in their order.
    """

    def __init__(self, name: str, description: str, outcomes: Any = None) -> None:
        """Name the union of these outcomes; without them, of those in the brackets."""
        self.name = name
        self._description = description
        self._outcomes = outcomes

    @property
    def outcomes(self) -> Any:
        """The union of the outcomes."""
        return self._outcomes or get_args(self.__orig_class__)[0]  # type: ignore[attr-defined]

    @cached_property
    def type(self) -> Any:
        """The union for `graphql_type`. The types of its members have to be registered before."""
        members = tuple(dict.fromkeys(map(type_of, get_args(self.outcomes))))
        union = strawberry.union(self.name, description=self._description)
        return Annotated[Union[members], union]  # noqa: UP007 - the members are known at run time

    def mutation(self, description: str) -> Callable[[Resolver], StrawberryField]:
        """Declare the decorated method as a mutation with this result."""
        declare: Callable[[Resolver], StrawberryField] = strawberry.field(
            description=description, graphql_type=self.type
        )
        return declare

    def present(self, outcome: Outcome, view: ResultView) -> Any:
        """Return what clients see of an outcome."""
        return _presenters[type(outcome)](outcome, view)


def _derive(declaration: Declaration) -> tuple[type, Presenter]:
    # Presenters make the objects without the constructor, so it would be compiled for nothing.
    body: dict[str, Any] = {
        "__module__": __name__,
        "__annotations__": {},
        "__init__": object.__init__,
    }
    conversions: list[tuple[str, str, Convert | None]] = []
    for each in declaration.shown_fields:
        shown_as = _shown_field_as(each)
        body["__annotations__"][each.name] = shown_as.type
        body[each.name] = strawberry.field(description=each.description)
        conversions.append((each.name, each.attribute, shown_as.convert))
    bases = (Refusal,) if declaration.message else ()
    derived: Any = strawberry.type(
        type(declaration.name, bases, body), description=declaration.description
    )
    message = declaration.message
    if message is not None:
        # Both are the same for all refusals of a class, unless the message depends on its reader.
        derived.code, derived.message = RefusalCode[declaration.code], message.neutral
    sentence = None if message is None or message.is_constant else message
    return derived, _presenter(derived, tuple(conversions), sentence)


def _presenter(
    derived: type,
    conversions: tuple[tuple[str, str, Convert | None], ...],
    sentence: Message | None,
) -> Presenter:
    new = object.__new__

    def present_derived(outcome: object, view: ResultView) -> object:
        # Most requests end here: a call of the constructor would take twice as long.
        shown: Any = new(derived)
        values = shown.__dict__
        for name, attribute, convert in conversions:
            value = getattr(outcome, attribute)
            values[name] = value if convert is None else convert(value, outcome, view)
        if sentence is not None:
            values["message"] = _sentence(sentence, outcome, view)
        return shown

    return present_derived


def _shown_field_as(shown: ShownField) -> ShownAs:
    if not shown.as_slot:
        return _type_shown_as(shown.type)
    slot = _shown_as[AsSlot]
    return slot if shown.type is SlotId else _list_of(slot)


def _type_shown_as(domain_type: Any) -> ShownAs:
    if domain_type in _shown_as:
        return _shown_as[domain_type]
    if get_origin(domain_type) is tuple:
        return _list_of(_type_shown_as(get_args(domain_type)[0]))
    if domain_type in declarations or domain_type in _types:
        return ShownAs(type_of(domain_type), lambda value, _outcome, view: present(value, view))
    return ShownAs(domain_type)


def _list_of(inner: ShownAs) -> ShownAs:
    type_: Any = list[inner.type]  # type: ignore[name-defined]
    if (convert := inner.convert) is None:
        return ShownAs(type_)
    return ShownAs(
        type_, lambda values, outcome, view: [convert(each, outcome, view) for each in values]
    )


def _sentence(message: Message, refusal: object, view: ResultView) -> str:
    """Return the message of a refusal for the viewer: about themselves, or about somebody else.

    A guardian reads of a dependent as of somebody else.
    """
    about, viewer = message.user_of(refusal) or view.booked_for, view.viewer
    if about is None or viewer is None:
        text = message.neutral
    elif about == viewer.user_id and viewer.actor_id is None:
        text = message.own
    else:
        text = message.other
    return message.fill(text, refusal)


register_value(SlotId, strawberry.ID, lambda slot_id, _outcome, _view: ids.slot_global_id(slot_id))
register_value(UserId, strawberry.ID, lambda user_id, _outcome, _view: ids.user_global_id(user_id))
register_value(TeamId, strawberry.ID, lambda team_id, _outcome, _view: ids.team_global_id(team_id))
register_value(CampaignId, strawberry.ID, lambda id_, _outcome, _view: ids.campaign_global_id(id_))
register_value(SeriesId, strawberry.ID, lambda id_, _outcome, _view: ids.series_global_id(id_))
register_value(
    BookingId,
    strawberry.ID,
    lambda booking_id, outcome, _view: ids.booking_global_id(outcome.slot_id, booking_id),
)
register_value(meetings.Meeting, Meeting, None)
register_value(EmailAddress, scalars.EmailAddress, None)
register_value(SentId, strawberry.ID, None)
register_type(
    validation.FieldProblem, FieldProblem, lambda each, _view: FieldProblem.from_domain(each)
)
