"""What stands in the sources of the board: its modules, operations and texts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    get_named_type,
    is_abstract_type,
    parse,
    visit,
)

from slotlock.api.board.documents import BOARD_DIR, board_documents
from slotlock.api.board.files import board_files, is_module
from slotlock.domain.shared.declare import declarations
from slotlock.graphql.schema.schema import executable_schema

STATIC = BOARD_DIR / "static"
MODULES = {path.relative_to(STATIC).as_posix(): path.read_text() for path in STATIC.rglob("*.js")}
OPERATIONS = {id_.split("/")[1]: parse(text) for id_, text in board_documents().items()}
Messages = dict[str, str | dict[str, str]]
LANGUAGES: dict[str, Messages] = {
    path.stem: json.loads(path.read_text()) for path in (BOARD_DIR / "messages").iterdir()
}
CODES = {each.name: each.code for each in declarations.values() if each.message}
STRING = re.compile(r'"([^"\n\\]*)"')
# A form with what its texts begin with, and a field of it: one that it shows, or of its table.
FORM = re.compile(r'\bnew Form\(\s*"(\w+)"')
FIELD = re.compile(
    r'(?:\.(?:field|select|check|time|duration|rows|days|label)\(\s*|\bname: )"(\w+)"'
)
CLOSING = {"(": ")", "[": "]", "{": "}"}


def sent_modules() -> dict[str, str]:
    """Return the modules by name, with those of the operations."""
    return {name: text.decode() for name, text in board_files().items() if is_module(name)}


def string_literals() -> set[str]:
    """Return all texts in double quotes of all modules."""
    return {text for module in MODULES.values() for text in STRING.findall(module)}


def first_arguments(*functions: str) -> Iterator[tuple[str, str]]:
    """Yield the first argument of each call of these functions, with the name of the module."""
    call = re.compile(rf"(?<![\w.])(?:{'|'.join(functions)})\(")
    for name, text in MODULES.items():
        for found in call.finditer(text):
            yield name, _argument(text, found.end())


def _argument(text: str, start: int, ends: str = ",)") -> str:
    depth = 0
    for end in range(start, len(text)):
        if depth == 0 and text[end] in ends:
            return text[start:end].strip()
        depth += (text[end] in CLOSING) - (text[end] in CLOSING.values())
    raise AssertionError("a call without an end")


def text_keys() -> dict[str, str]:
    """Return the keys that `t` and `hasText` are called with, and the modules that call them.

    Of `isOne ? "a" : "b"` both are keys.
    """
    keys: dict[str, str] = {}
    for module, argument in first_arguments("t", "hasText"):
        chosen = "" if argument.startswith("`") else argument.partition(" ? ")[2] or argument
        keys |= dict.fromkeys(STRING.findall(chosen), module)
    return keys


def field_texts() -> set[str]:
    """Return the keys of the labels that forms give their fields by the names of these."""
    keys = set[str]()
    for text in MODULES.values():
        for found in FIELD.finditer(text):
            if "label:" not in _argument(text, found.end(), ")"):
                keys |= {f"{beginning}.{found[1]}" for beginning in FORM.findall(text)}
    return keys


def form_texts() -> set[str]:
    """Return the keys that forms make of the strings of their modules: labels, and their help."""
    return {
        f"{beginning}.{name}{end}"
        for text in MODULES.values()
        for beginning in FORM.findall(text)
        for name in STRING.findall(text)
        for end in ("", "Help")
    }


def template_beginnings() -> tuple[str, ...]:
    """Return the beginnings of all keys that a template of a module completes."""
    found = (re.findall(r"`((?:\w+\.)+)\$\{", module) for module in MODULES.values())
    return tuple(sorted({beginning for each in found for beginning in each}))


def placeholders(text: str | dict[str, str]) -> set[str]:
    """Return the variables of a text in any of its forms."""
    return set(re.findall(r"\{(\w+)\}", json.dumps(text)))


class _Refusals(Visitor):
    """Notes the refusals that an operation can return, and the fields that it selects of them."""

    def __init__(self, types: TypeInfo, document: DocumentNode) -> None:
        super().__init__()
        self.found: dict[str, set[str]] = {}
        self._types = types
        definitions = document.definitions
        named = (each for each in definitions if isinstance(each, FragmentDefinitionNode))
        self._fragments = {each.name.value: each for each in named}

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        type_ = get_named_type(self._types.get_type())
        if node.selection_set is None or not is_abstract_type(type_):
            return
        if type_.name == "Refusal":  # of `Slot.myEligibility`: what `bookSlot` would return
            type_ = executable_schema.type_map["BookSlotResult"]
        assert is_abstract_type(type_)
        for each in executable_schema.get_possible_types(type_):
            if each.name in CODES:
                fields = self.found.setdefault(each.name, set())
                fields |= set(self._selected(node, each))

    def _selected(self, node: Any, type_: GraphQLObjectType) -> Iterator[str]:
        for each in node.selection_set.selections:
            if isinstance(each, FieldNode):
                yield each.name.value
                continue
            is_spread = isinstance(each, FragmentSpreadNode)
            part = self._fragments[each.name.value] if is_spread else each
            if _applies(part.type_condition.name.value, type_):
                yield from self._selected(part, type_)


def _applies(condition: str, type_: GraphQLObjectType) -> bool:
    other = executable_schema.type_map[condition]
    return other is type_ or (isinstance(other, GraphQLInterfaceType) and other in type_.interfaces)


def refusals(document: DocumentNode) -> dict[str, set[str]]:
    """Return the codes of the refusals that an operation can return, with the selected fields."""
    types = TypeInfo(executable_schema)
    visitor = _Refusals(types, document)
    visit(document, TypeInfoVisitor(types, visitor))
    return {CODES[name]: fields for name, fields in visitor.found.items()}


def path_of(module: str, imported: str) -> str:
    """Return the path of an imported module, relative to the folder of all modules."""
    folder = Path("/", module).parent
    return str((folder / imported).resolve()).removeprefix("/")
