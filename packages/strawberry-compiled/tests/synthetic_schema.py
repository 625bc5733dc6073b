"""A schema with every kind of type, whose resolvers succeed, fail, wait and lie by chance.

The value of a field depends only on the seed of the execution and the path of the field, so two
executors that work alike get the same values in any order.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLScalarType,
    GraphQLUnionType,
    build_schema,
    get_named_type,
)

FIELDS = """
  id: ID!
  int: Int
  int1: Int!
  float: Float
  string: String
  string1: String!
  boolean: Boolean
  color: Color
  color1: Color!
  even: Even
  even1: Even!
  grid: [[Int!]!]!
  words: [String]
  colors: [Color!]
  a: A
  a1: A!
  manyA: [A]
  manyA1: [A!]!
  matrix: [[A]]
  matrix1: [[A!]!]!
  thing: Thing
  thing1: Thing!
  things: [Thing!]
  things1: [Thing!]!
  node: Node
  node1: Node!
  nodes: [Node]
  named: Named
  echo(
    id: ID, ids: [ID!], n: Int! = 3, color: Color = GREEN, even: Even, filter: Filter,
    filters: [Filter!], rows: [[Int]]
  ): String
  strict(filter: Filter!, flag: Boolean!): String!
"""
SDL = f"""
enum Color {{ RED GREEN BLUE }}
scalar Even
input Inner {{ k: Int!, even: Even = 4, color: Color }}
input Filter {{
  n: Int = 5
  m: Int!
  inner: Inner = {{k: 3}}
  inners: [Inner!]
  tags: [String!] = ["x"]
  flag: Boolean! = true
}}
interface Node {{ {FIELDS} }}
interface Named implements Node {{ {FIELDS} }}
type A implements Node & Named {{ {FIELDS} }}
type B implements Node {{ {FIELDS} only: Int! }}
type C implements Node & Named {{ {FIELDS} }}
union Thing = A | B | C
type Query {{ {FIELDS} }}
type Mutation {{ {FIELDS} }}
"""


@dataclass(frozen=True)
class Source:
    """An object of the type that its name says."""

    type_name: str

    def __repr__(self) -> str:
        return f"Source({self.type_name})"


@dataclass(frozen=True)
class Chances:
    """The seed of an execution, and how likely its resolvers fail and wait."""

    seed: int
    failure: float
    waiting: float


def resolve(source: object, info: GraphQLResolveInfo[Chances], **arguments: Any) -> Any:
    """Return or raise what the seed and the path say."""
    dice = random.Random(f"{info.context.seed} {info.path.as_list()} {source!r}")
    if info.field_name in ("echo", "strict") and dice.random() < 0.9:
        return repr(arguments)
    return _maybe_later(info.return_type, dice, info.context)


def _maybe_later(output_type: GraphQLOutputType, dice: random.Random, chances: Chances) -> Any:
    if dice.random() < chances.waiting:
        return _later(output_type, dice, chances)
    return _value(output_type, dice, chances)


async def _later(output_type: GraphQLOutputType, dice: random.Random, chances: Chances) -> Any:
    for _ in range(dice.randrange(3)):
        await asyncio.sleep(0)
    return _value(output_type, dice, chances)


def _value(output_type: GraphQLOutputType, dice: random.Random, chances: Chances) -> Any:
    if dice.random() < chances.failure:
        return _failure(dice)
    if isinstance(output_type, GraphQLNonNull):
        return _value(output_type.of_type, dice, chances)
    if dice.random() < 0.1:
        return None
    if isinstance(output_type, GraphQLList):
        return _list(output_type, dice, chances)
    if isinstance(output_type, GraphQLObjectType):
        return Source(output_type.name)
    if isinstance(output_type, GraphQLInterfaceType | GraphQLUnionType):
        return Source(dice.choice(("A", "C") if output_type.name == "Named" else ("A", "B", "C")))
    return dice.choice(_LEAVES[get_named_type(output_type).name])


def _failure(dice: random.Random) -> Any:
    failure = dice.randrange(6)
    if failure == 0:
        raise RuntimeError("a resolver failed")
    if failure == 1:
        return ValueError("a resolver returned an error")
    if failure == 2:
        return None
    return dice.choice([Source("B"), Source("Query"), Source("Nothing"), "text", 2**40, object])


def _list(output_type: GraphQLList[Any], dice: random.Random, chances: Chances) -> Any:
    item_type = output_type.of_type
    count = dice.randrange(4)
    # Items wait and fail less often than fields, or hardly any list would be complete.
    chances = Chances(chances.seed, chances.failure / 4, chances.waiting / 2)
    form = dice.randrange(10)
    if form == 0:
        return (_safely(item_type, dice, chances) for _ in range(count))
    if form == 1 and chances.waiting:
        return _stream(item_type, dice, chances, count)
    items = [_safely(item_type, dice, chances) for _ in range(count)]
    return tuple(items) if form == 2 else items


def _safely(item_type: GraphQLOutputType, dice: random.Random, chances: Chances) -> Any:
    try:
        return _maybe_later(item_type, dice, chances)
    except RuntimeError as error:
        return error


async def _stream(
    item_type: GraphQLOutputType, dice: random.Random, chances: Chances, count: int
) -> AsyncIterator[Any]:
    for _ in range(count):
        yield _safely(item_type, dice, chances)
    if dice.random() < chances.failure:
        raise RuntimeError("a stream failed")


_LEAVES: dict[str, list[Any]] = {
    "ID": ["x", 7, "", 1.5],
    "Int": [0, -5, 2**31 - 1, 2**31, True, 3.0, 3.5, "12", "twelve"],
    "Float": [0.5, 3, float("nan"), float("inf"), "2.5", "text", True],
    "String": ["", "text", 5, 1.5, True, ["x"], {"x": 1}],
    "Boolean": [True, False, 1, 0, "true", 1.5],
    "Color": [1, 2, 3, 4, "RED", [1]],
    "Even": [0, 2, 3, "x"],
}


def _serialize_even(value: Any) -> Any:
    if isinstance(value, str):
        return None
    if value % 2:
        raise ValueError("the number is odd")
    return value


def _parse_even(value: Any) -> Any:
    if not isinstance(value, int) or value % 2:
        raise ValueError("the number is odd")
    return value


def _is_source(name: str, value: object) -> bool:
    return isinstance(value, Source) and value.type_name == name


def _build() -> Any:
    built = build_schema(SDL)
    for name in ("A", "B", "C", "Query", "Mutation", "Node", "Named"):
        named: Any = built.type_map[name]
        for field in named.fields.values():
            field.resolve = resolve
    even: Any = built.type_map["Even"]
    assert isinstance(even, GraphQLScalarType)
    even.coerce_output_value = _serialize_even
    even.coerce_input_value = even.parse_value = _parse_even  # type: ignore[method-assign]
    color: Any = built.type_map["Color"]
    assert isinstance(color, GraphQLEnumType)
    for value, number in zip(color.values.values(), (1, 2, 3), strict=True):
        value.value = number
    for name in ("A", "B", "C"):
        object_type: Any = built.type_map[name]
        object_type.is_type_of = IsTypeOf(name)
    named_interface: Any = built.type_map["Named"]
    named_interface.resolve_type = resolve_named
    return built


class IsTypeOf:
    """Tells by its name whether a source has a type; of `C` only later."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, value: object, _info: object) -> bool | Awaitable[bool]:
        """Return whether the value has the type."""
        if value == "text":
            raise TypeError("a text has no type")
        return self._later(value) if self._name == "C" else _is_source(self._name, value)

    async def _later(self, value: object) -> bool:
        await asyncio.sleep(0)
        return _is_source(self._name, value)


def resolve_named(value: Any, _info: object, _type: object) -> Any:
    """Return the name of the type of a source, or nonsense for anything else."""
    return value.type_name if isinstance(value, Source) else value if value != "text" else None


SCHEMA = _build()
