"""Strategies for documents over the synthetic schema, with their variables."""

from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
    is_composite_type,
)
from hypothesis import strategies as st

from synthetic_schema import SCHEMA

MAX_DEPTH = 4
MAX_FIELDS = 25

Draw = Any

_SCALAR_LITERALS = {
    "ID": ["1", '"x"', '""'],
    "Int": ["1", "-3", "0"],
    "Float": ["1.5", "2"],
    "String": ['"text"', '""'],
    "Boolean": ["true", "false"],
    "Even": ["2", "-4"],
}
_SCALAR_VALUES: dict[str, list[Any]] = {
    "ID": ["x", 1, "", True],
    "Int": [1, -3, 2.0, 2**31, "1", True],
    "Float": [1.5, 2, "x"],
    "String": ["text", "", 3],
    "Boolean": [True, False, 1, "true"],
    "Even": [2, -4, 3, "x"],
    "Color": ["RED", "GREEN", "PINK", 1],
}


@dataclass(frozen=True)
class RandomRequest:
    """A document with one operation, and values for its variables."""

    text: str
    variables: dict[str, Any]


@dataclass
class _Writer:
    """The document so far."""

    draw: Draw
    variables: dict[str, Any] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)
    fragments: list[tuple[str, str, str]] = field(default_factory=list)
    count: int = 0

    def next_number(self) -> int:
        """Count a name."""
        self.count += 1
        return self.count

    def chance(self, one_in: int) -> bool:
        """Decide by chance."""
        return bool(self.draw(st.integers(1, one_in)) == 1)


@st.composite
def requests(draw: Draw) -> RandomRequest:
    """Draw a query or a mutation."""
    writer = _Writer(draw)
    operation = draw(st.sampled_from(["query", "mutation"]))
    root = SCHEMA.type_map["Query" if operation == "query" else "Mutation"]
    selections = _selection_set(writer, root, 0)
    definitions = f"({', '.join(writer.definitions)})" if writer.definitions else ""
    fragments = "\n".join(
        f"fragment {name} on {condition} {body}" for name, condition, body in writer.fragments
    )
    return RandomRequest(f"{operation} Q{definitions} {selections}\n{fragments}", writer.variables)


def _selection_set(writer: _Writer, parent: GraphQLNamedType, depth: int) -> str:
    size = writer.draw(st.integers(1, 4 if depth else 6))
    return "{ " + " ".join(_selection(writer, parent, depth) for _ in range(size)) + " }"


def _selection(writer: _Writer, parent: GraphQLNamedType, depth: int) -> str:
    kind = writer.draw(st.integers(0, 9))
    if kind == 0:
        return "__typename" if writer.chance(2) else f"t{writer.next_number()}: __typename"
    if kind <= 2 and depth < MAX_DEPTH and parent.name not in ("Query", "Mutation"):
        return _fragment(writer, parent, depth)
    if isinstance(parent, GraphQLUnionType):
        return _inline_fragment(writer, parent, depth)
    return _field(writer, parent, depth)


def _overlapping_types(parent: GraphQLNamedType) -> list[str]:
    if isinstance(parent, GraphQLObjectType):
        return [parent.name, "Node", "Thing"] + (["Named"] if parent.name != "B" else [])
    return ["A", "B", "C", "Node", "Thing", "Named"] if parent.name != "Named" else ["A", "C"]


def _fragment(writer: _Writer, parent: GraphQLNamedType, depth: int) -> str:
    known = [one for one in writer.fragments if one[1] in _overlapping_types(parent)]
    if known and writer.chance(2):
        return f"...{writer.draw(st.sampled_from(known))[0]} {_directives(writer)}"
    if writer.chance(2):
        return _inline_fragment(writer, parent, depth)
    condition = writer.draw(st.sampled_from(_overlapping_types(parent)))
    name = f"F{writer.next_number()}"
    body = _selection_set(writer, SCHEMA.type_map[condition], depth + 1)
    writer.fragments.append((name, condition, body))
    return f"...{name} {_directives(writer)}"


def _inline_fragment(writer: _Writer, parent: GraphQLNamedType, depth: int) -> str:
    if not isinstance(parent, GraphQLUnionType) and writer.chance(3):
        return f"... {_directives(writer)} {_selection_set(writer, parent, depth + 1)}"
    condition = writer.draw(st.sampled_from(_overlapping_types(parent)))
    if depth >= MAX_DEPTH:
        return f"... on {condition} {{ __typename }}"
    body = _selection_set(writer, SCHEMA.type_map[condition], depth + 1)
    return f"... on {condition} {_directives(writer)} {body}"


def _field(writer: _Writer, parent: GraphQLNamedType, depth: int) -> str:
    assert isinstance(parent, GraphQLObjectType | GraphQLInterfaceType)
    is_deep = depth >= MAX_DEPTH or writer.count > MAX_FIELDS
    names = [
        name
        for name, one in parent.fields.items()
        if not (is_deep and is_composite_type(get_named_type(one.type)))
    ]
    name = writer.draw(st.sampled_from(names))
    definition = parent.fields[name]
    number = writer.next_number()
    arguments = [
        f"{argument}: {_literal(writer, one.type, one.default is not None)}"
        for argument, one in definition.args.items()
        if (isinstance(one.type, GraphQLNonNull) and one.default is None) or writer.chance(2)
    ]
    alias = f"f{number}: " if arguments or writer.chance(3) else ""
    listed = f"({', '.join(arguments)})" if arguments else ""
    field_type = get_named_type(definition.type)
    body = _selection_set(writer, field_type, depth + 1) if is_composite_type(field_type) else ""
    return f"{alias}{name}{listed} {_directives(writer)} {body}"


def _directives(writer: _Writer) -> str:
    if not writer.chance(8):
        return ""
    name = writer.draw(st.sampled_from(["skip", "include"]))
    if writer.chance(2):
        return f"@{name}(if: {writer.draw(st.sampled_from(['true', 'false']))})"
    variable = f"v{writer.next_number()}"
    has_default = writer.chance(3)
    writer.definitions.append(f"${variable}: " + ("Boolean = true" if has_default else "Boolean!"))
    if not has_default or writer.chance(2):
        values = [True, False, None] if has_default else [True, False]
        writer.variables[variable] = writer.draw(st.sampled_from(values))
    return f"@{name}(if: ${variable})"


def _literal(writer: _Writer, input_type: GraphQLInputType, has_default: bool) -> str:
    if writer.chance(3):
        return _variable(writer, input_type, has_default)
    if isinstance(input_type, GraphQLNonNull):
        input_type = input_type.of_type
    elif writer.chance(10):
        return "null"
    if isinstance(input_type, GraphQLList):
        if writer.chance(4):
            return _literal(writer, input_type.of_type, has_default=False)
        size = writer.draw(st.integers(0, 3))
        items = [_literal(writer, input_type.of_type, has_default=False) for _ in range(size)]
        return f"[{', '.join(items)}]"
    if isinstance(input_type, GraphQLInputObjectType):
        fields = [
            f"{name}: {_literal(writer, one.type, one.default is not None)}"
            for name, one in input_type.fields.items()
            if (isinstance(one.type, GraphQLNonNull) and one.default is None) or writer.chance(2)
        ]
        return "{" + ", ".join(fields) + "}"
    if isinstance(input_type, GraphQLEnumType):
        return str(writer.draw(st.sampled_from(["RED", "BLUE"])))
    return str(writer.draw(st.sampled_from(_SCALAR_LITERALS[input_type.name])))


def _variable(writer: _Writer, input_type: GraphQLInputType, has_default: bool) -> str:
    name = f"v{writer.next_number()}"
    variable_type = str(input_type)
    if isinstance(input_type, GraphQLNonNull) and has_default and writer.chance(2):
        variable_type = str(input_type.of_type)
    default = ""
    if isinstance(input_type, GraphQLEnumType) and writer.chance(2):
        default = " = BLUE"
    writer.definitions.append(f"${name}: {variable_type}{default}")
    if not writer.chance(6):
        writer.variables[name] = _json_value(writer, input_type)
    return f"${name}"


def _json_value(writer: _Writer, input_type: GraphQLInputType) -> Any:
    """Draw a value for a type, which is sometimes wrong."""
    if writer.chance(15):
        return writer.draw(st.sampled_from([None, "wrong", 2**40, {"x": 1}, [None], []]))
    if isinstance(input_type, GraphQLNonNull):
        input_type = input_type.of_type
    if isinstance(input_type, GraphQLList):
        if writer.chance(4):
            return _json_value(writer, input_type.of_type)
        return [
            _json_value(writer, input_type.of_type) for _ in range(writer.draw(st.integers(0, 3)))
        ]
    if isinstance(input_type, GraphQLInputObjectType):
        return {
            name: _json_value(writer, one.type)
            for name, one in input_type.fields.items()
            if isinstance(one.type, GraphQLNonNull) or writer.chance(2)
        }
    values = _SCALAR_VALUES[input_type.name]
    return values[0] if writer.chance(2) else writer.draw(st.sampled_from(values))
