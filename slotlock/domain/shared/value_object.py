"""Immutable values, which are created, compared and hashed in C."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

import msgspec

from slotlock.domain.shared.facts import attribute, camel_case, fact

Value = TypeVar("Value")
# What a value was loaded from. The domain passes it on unread, so that a changed value retains what
# a newer version stored with it.
Stored = Mapping[str, object] | None
StructType: Any = type(msgspec.Struct)
_as_dataclass = dataclass(init=False, repr=False, eq=False, match_args=False)


class _ValueType(StructType):  # type: ignore[misc]
    """The type of the classes of values: structs that declare their fields as dataclasses do."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        inherited: dict[str, Field[Any]] = {}
        for base in bases:
            inherited |= getattr(base, "__dataclass_fields__", {})
        declared = inherited | _declared_fields(namespace)
        # As dataclasses do, a field that is declared again has the same place as before.
        annotations = namespace.get("__annotations__", {})
        namespace["__annotations__"] = {each.name: each.type for each in declared.values()}
        for each in declared.values():
            namespace.pop(each.name, None)
            if each.default is not MISSING:
                namespace[each.name] = each.default
            elif each.default_factory is not MISSING:
                namespace[each.name] = msgspec.field(default_factory=each.default_factory)
        namespace["__dataclass_fields__"] = declared
        _hide_fields(namespace, list(declared.values()))
        made: Any = super().__new__(cls, name, bases, namespace, frozen=True, **options)
        made.__annotations__ = annotations
        return made


def _declared_fields(namespace: Mapping[str, Any]) -> dict[str, Field[Any]]:
    """Return the fields that the body of a class declares, by their names."""
    names = namespace.get("__annotations__", {})
    body = {name: namespace[name] for name in ("__annotations__", *names) if name in namespace}
    # Without a docstring, the dataclass would make one of its signature.
    body |= {"__doc__": "Fields.", "__module__": namespace["__module__"]}
    made: Any = _as_dataclass(type("Fields", (), body))
    fields: dict[str, Field[Any]] = made.__dataclass_fields__
    return fields


def _hide_fields(namespace: dict[str, Any], declared: list[Field[Any]]) -> None:
    """Make a class compare and show those of its fields only that are not excluded."""
    if not all(each.compare for each in declared) and "__eq__" not in namespace:
        values = attrgetter(*(each.name for each in declared if each.compare))

        def is_equal(self: object, other: object) -> bool:
            same_class = self.__class__ is other.__class__
            return values(self) == values(other) if same_class else NotImplemented

        namespace |= {"__eq__": is_equal, "__hash__": lambda self: hash(values(self))}
    if not all(each.repr for each in declared) and "__repr__" not in namespace:
        shown = [each.name for each in declared if each.repr]

        def describe(self: object) -> str:
            attributes = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
            return f"{self.__class__.__qualname__}({attributes})"

        namespace["__repr__"] = describe


@dataclass_transform(frozen_default=True, field_specifiers=(field, fact, attribute))
def value_object(cls: type[Value]) -> type[Value]:
    """Make a class of immutable values with slots, equality and a hash.

    Its fields are declared, listed and replaced like those of a dataclass. One booking creates
    about 40 values: a struct costs no call of Python for that, nor source text that every start
    would compile.
    """
    return _made(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field, fact, attribute))
def document_object(cls: type[Value]) -> type[Value]:
    """Make a class of values that are objects of a JSON document, which msgspec reads and writes.

    The names are those of the attributes, such as `maxBookings`, and ids have none of their own:
    `slot_id` is `slot`.
    """
    return _made(cls, rename=lambda name: camel_case(name.removesuffix("_id")))


def _made(cls: type[Value], **options: Any) -> type[Value]:
    if isinstance(cls, _ValueType):  # since a base is one
        return cls
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in ("__dict__", "__weakref__")
    }
    bases = *(base for base in cls.__bases__ if base is not object), msgspec.Struct
    value_class: type[Value] = _ValueType(cls.__name__, bases, namespace, **options)
    return value_class


def forwarded(path: str, _type: type[Value]) -> Value:
    """Return a property with the value of an attribute of a part, read without a call of Python."""
    read: Any = property(attrgetter(path))
    value: Value = read
    return value


@dataclass_transform(frozen_default=True, field_specifiers=(field, fact, attribute))
def partial_value_object(cls: type[Value]) -> type[Value]:
    """Make a class of values with a subclass whose instances lack attributes, as no struct can."""
    value_class: type[Value] = dataclass(slots=True, unsafe_hash=True)(cls)
    return value_class
