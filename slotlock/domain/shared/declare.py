"""Declare a refusal or an outcome once: all that clients see of it follows from its class.

Both decorators make a value object. The docstring of the class describes its type in the schema.
Clients get the fields that are `shown`, in the order of the class body. The name of the class is
the name of the type, and of the label in metrics and the tag in stored records. The code of a
refusal is this name in capitals.

A field of a base class that is declared again has the same place in the constructor as before.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, field, fields
from datetime import datetime
from inspect import get_annotations
from string import Formatter
from typing import Annotated, Any, TypeVar, dataclass_transform

from slotlock.domain.shared.text import format_in_zone
from slotlock.domain.shared.value_object import value_object

Value = TypeVar("Value")

CURRENT_SLOT = "The current state of the slot."
REQUESTED_SLOT = "The slot that the request named."
# An id as the client sent it.
SentId = Annotated[str, "id"]
SENT_ID = "The id that the request contained."
RETRY_AFTER_MS = "How long to wait before a retry, in milliseconds."


@value_object
class ShownField:
    """A field that clients see: its name in the class, and its name in the schema in snake case.

    Clients see the slots themselves instead of their ids if it is shown `as_slot`.
    """

    attribute: str
    type: object
    name: str
    description: str
    as_slot: bool


@value_object
class Message:
    """What a refusal says to its user, to other readers, and if its user is not known.

    `about` is the field that names the user. Without it, it is the user whom the request was for.
    `names` are those of the values that the texts contain.
    """

    own: str
    other: str
    neutral: str
    about: str | None
    names: tuple[str, ...]

    @property
    def is_constant(self) -> bool:
        """Whether all refusals of the class say the same to everybody."""
        return self.own == self.other == self.neutral and not self.names

    def fill(self, text: str, refusal: object) -> str:
        """Return one of the texts with the values of a refusal."""
        values = ((name, getattr(refusal, name)) for name in self.names)
        return text.format_map(
            {name: format_in_zone(v) if isinstance(v, datetime) else v for name, v in values}
        )

    def user_of(self, refusal: object) -> Any:
        """Return the id of the user that a refusal names; None if it names none."""
        named = getattr(refusal, self.about) if self.about else None
        return getattr(named, "user_id", named)


@value_object
class Declaration:
    """What was declared of a class; an outcome has no message."""

    name: str
    description: str
    shown_fields: tuple[ShownField, ...]
    message: Message | None

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).upper()


declarations: dict[type, Declaration] = {}


def shown(description: str, *, name: str | None = None, default: Any = MISSING) -> Any:
    """Declare a field that clients see, under another name if `name` is given."""
    return field(default=default, metadata={"description": description, "name": name})


def shown_slot(description: str) -> Any:
    """Declare a field with the id of a slot, of which clients see the slot."""
    return field(metadata={"description": description, "name": "slot", "as_slot": True})


def shown_slots(description: str) -> Any:
    """Declare a field with ids of slots, of which clients see the slots."""
    return field(metadata={"description": description, "name": "slots", "as_slot": True})


def to_reader(
    *, own: str, other: str, neutral: str | None = None, about: str | None = None
) -> Message:
    """Return a message that speaks to its user. By default, it says `other` to an unknown one."""
    texts = own, other, other if neutral is None else neutral
    parts = (part for text in texts for part in Formatter().parse(text))
    names = dict.fromkeys(name for _, name, _, _ in parts if name)
    return Message(*texts, about, tuple(names))


@dataclass_transform(frozen_default=True, field_specifiers=(field, shown, shown_slot, shown_slots))
def outcome(cls: type[Value]) -> type[Value]:
    """Declare an outcome of a request that was carried out."""
    return _declare(cls, None, cls.__name__)


@dataclass_transform(frozen_default=True, field_specifiers=(field, shown, shown_slot, shown_slots))
def refusal(
    *, message: str | Message, name: str | None = None
) -> Callable[[type[Value]], type[Value]]:
    """Declare a refusal. Clients read the name of the class, or `name`.

    Raises:
        TypeError: a message contains a name that the class does not have.
    """
    text = to_reader(own=message, other=message) if isinstance(message, str) else message
    return lambda cls: _declare(cls, text, name or cls.__name__)


def _declare(cls: type[Value], message: Message | None, name: str) -> type[Value]:
    own_types = get_annotations(cls)
    declared = value_object(cls)
    for each in message.names if message else ():
        if not hasattr(declared, each):
            raise TypeError(f"{name} has no {each}, which its message contains")
    description = " ".join((cls.__doc__ or "").split())
    shown_fields = tuple(_shown_fields(declared, own_types))
    declarations[declared] = Declaration(name, description, shown_fields, message)
    return declared


def _shown_fields(declared: Any, own_types: dict[str, object]) -> Iterator[ShownField]:
    metadata = {each.name: each.metadata for each in fields(declared)}
    for attribute, type_ in own_types.items():
        if how := metadata[attribute]:
            name = how["name"] or attribute
            yield ShownField(attribute, type_, name, how["description"], how.get("as_slot", False))
