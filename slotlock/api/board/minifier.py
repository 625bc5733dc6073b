"""Modules of JavaScript as they are sent: without comments and blanks, with short names.

A name of variables has the same short name wherever its file declares it: that compresses better
than the shortest names of each function. What a file exports or imports keeps its name, or has the
one that its caller shares out. `let` stands for `const`, whose names nothing assigns to; a number
or a text with a name of the top level stands where that is used, if it is once.
Only the `name` and the text of a function or class show the difference.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from string import ascii_lowercase, ascii_uppercase
from typing import cast

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

JAVASCRIPT = Language(tree_sitter_javascript.language())
FUNCTION_DECLARATIONS = ("function_declaration", "generator_function_declaration")
NAMED = (*FUNCTION_DECLARATIONS, "function_expression", "generator_function")
FUNCTIONS = (*NAMED, "arrow_function", "method_definition")
WITH_PARAMETERS = (*FUNCTIONS, "catch_clause")
SCOPES = {*WITH_PARAMETERS, "statement_block", "switch_body", "for_statement", "for_in_statement"}
# Names that are outside the scope of their node: a method may be called as an expression says.
OUTER_NAMES = {(each, "name") for each in (*FUNCTION_DECLARATIONS, "method_definition")}
# The fields of nodes with the names that they declare.
DECLARATIONS = {
    *((each, "parameters") for each in FUNCTIONS),
    *((each, "name") for each in NAMED),
    *(("arrow_function", "parameter"), ("catch_clause", "parameter")),
    *(("class_declaration", "name"), ("variable_declarator", "name"), ("for_in_statement", "left")),
    *(("import_specifier", "name"), ("import_specifier", "alias")),
    *(("export_specifier", "name"), ("export_specifier", "alias")),
}
# What a semicolon ends, or the end of a line.
STATEMENTS = {
    *("expression_statement", "lexical_declaration", "return_statement", "throw_statement"),
    *("break_statement", "continue_statement", "debugger_statement", "do_statement"),
    *("field_definition", "using_declaration"),
}
# What would do something else with short names, or without blanks.
REFUSED = {"var", "namespace_export"}
REFUSED_NAMES = re.compile(r"eval|__proto__|.*\\.*")
SHORTHANDS = ("shorthand_property_identifier", "shorthand_property_identifier_pattern")
NAMES = ("identifier", *SHORTHANDS)
TOKENS = {"string", "regex", "empty_statement"}
TEMPLATE_TEXTS = {"string_fragment", "escape_sequence"}
# Shorter tokens for the same.
SAME = {"const": "let", "true": "!0", "false": "!1"}
IMPORTED = re.compile(r"^import \{([^}]*)\} from", re.MULTILINE)
WORD = re.compile(r"\w+")
KEYWORDS = {"as", "do", "if", "in", "of", "for", "let", "new", "try", "var"}


class Scope:
    """A function, block or other part of a module that declares names."""

    def __init__(self, outer: "Scope | None" = None) -> None:
        self.outer = outer
        self.declared = set[str]()
        # That of a function, if this is the one of its parameters.
        self.body: Scope | None = None
        # What is sent for the names that it and the scopes in it use.
        self.taken = set[str]()


def minify(module: str, shared: Mapping[str, str] | None = None) -> str:
    """Return a module that does the same, with a line for each statement of its top level.

    `shared` has the names that are sent for some of those that it exports or imports.

    Raises:
        ValueError: it is no module of JavaScript, or it has what would not do the same.
    """
    return _Module(with_inlined_constants(module)).minified(shared or {})


def shared_names(modules: Iterable[str]) -> dict[str, str]:
    """Return a short name for each that a module imports from another: no name of its own is such.

    The most frequent ones have one letter.
    """
    texts = [*modules]
    imported = {
        name for text in texts for what in IMPORTED.findall(text) for name in WORD.findall(what)
    }
    counts = Counter(word for text in texts for word in WORD.findall(text) if word in imported)
    letters = (*ascii_uppercase, *map("".join, product(ascii_uppercase, ascii_lowercase)))
    return dict(zip((name for name, _ in counts.most_common()), letters, strict=False))


def with_inlined_constants(module: str) -> str:
    """Return a module with the number or text of a constant where it is used, if that is once."""
    content = module.encode()
    root = Parser(JAVASCRIPT).parse(content).root_node
    named: dict[str, list[Node]] = {}
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type in NAMES:
            named.setdefault(text_of(node), []).append(node)
    changes = list[tuple[int, int, bytes]]()
    for statement in root.children:
        if statement.type != "lexical_declaration" or statement.children[0].type != "const":
            continue
        declarator = statement.named_children[0]
        name, value = map(declarator.child_by_field_name, ("name", "value"))
        if name is None or value is None or value.type not in {"number", "string"}:
            continue
        uses = [each for each in named[text_of(name)] if each != name]
        if [each.type for each in uses] == ["identifier"]:
            changes.append((statement.start_byte, statement.end_byte, b""))
            changes.append((uses[0].start_byte, uses[0].end_byte, (value.text or b"") + b" "))
    for start, end, text in sorted(changes, reverse=True):
        content = content[:start] + text + content[end:]
    return content.decode()


class _Module:
    def __init__(self, text: str) -> None:
        root = Parser(JAVASCRIPT).parse(text.encode()).root_node
        if root.has_error:
            raise ValueError("no module of JavaScript")
        # The text and kind of each token.
        self._tokens: list[tuple[str, str]] = []
        # The indexes of tokens: of names of variables with their scopes, and of first ones.
        self._scopes: dict[int, Scope] = {}
        self._starts = set[int]()
        self._joined = set[int]()
        self._top = Scope()
        self._public = set[str]()
        for statement in root.children:
            known, self._top.declared = self._top.declared, set()
            self._starts.add(len(self._tokens))
            self._visit(statement, "program", self._top)
            if statement.type in ("import_statement", "export_statement"):
                self._public |= self._top.declared
            self._top.declared |= known

    def _visit(self, node: Node, parent: str, scope: Scope) -> None:
        """Note the tokens of a node, with what they declare."""
        kind = node.type
        if kind == "comment":
            return
        if kind in REFUSED or (kind in STATEMENTS and _ends_with_line(node)):
            raise ValueError(f"a module with `{text_of(node)}`")
        if kind in TOKENS or not node.child_count:
            self._note_token(text_of(node), kind, scope)
            return
        if kind == "lexical_declaration" and parent == "statement_block" and _is_next(node):
            self._joined.add(len(self._tokens))
        outer = scope
        if kind in SCOPES:
            scope = Scope(outer)
        if kind == "statement_block" and parent in WITH_PARAMETERS:
            outer.body = scope
        for index, child in _children(node, parent):
            field = node.field_name_for_child(index)
            owner = outer if (kind, field) in OUTER_NAMES else scope
            if (kind, field) in DECLARATIONS and not _is_assignment(node):
                owner.declared.update(_names(child))
            self._visit(child, kind, owner)

    def _note_token(self, text: str, kind: str, scope: Scope) -> None:
        if kind in NAMES:
            if REFUSED_NAMES.fullmatch(text):
                raise ValueError(f"a module with `{text}`")
            self._scopes[len(self._tokens)] = scope
        self._tokens.append((text, kind))

    def minified(self, shared: Mapping[str, str]) -> str:
        """Return the module as it is sent."""
        short = self._short_names()
        sent = list[str]()
        last, last_kind = "", ""
        for index, (source, kind) in enumerate(self._tokens):
            text = SAME.get(kind, source)
            if index in self._scopes:
                is_own, is_public, _ = self._path(index)
                if is_own or is_public:
                    text = (short if is_own else shared).get(source, source)
                if text != source and kind in SHORTHANDS:
                    text = f"{source}:{text}"
            if last_kind == ";" and text == "}":
                sent.pop()
            elif index in self._joined:
                sent.pop()
                text = ","
            elif index in self._starts:
                sent.append("\n" * bool(sent))
            elif not TEMPLATE_TEXTS & {last_kind, kind} and _needs_blank(last, last_kind, text):
                sent.append(" ")
            sent.append(text)
            last, last_kind = text, kind
        return "".join(sent) + "\n"

    def _short_names(self) -> dict[str, str]:
        """Return the short names of all names, for two names of one scope never the same."""
        counts = Counter[str]()
        users: dict[str, set[Scope]] = {}
        for index in self._scopes:
            name, _ = self._tokens[index]
            is_own, _, scopes = self._path(index)
            if is_own:
                counts[name] += 1
                users.setdefault(name, set()).update(scopes)
            else:
                for scope in scopes:
                    scope.taken.add(name)
        short = dict[str, str]()
        for name, _ in counts.most_common():
            taken = set[str]().union(*(scope.taken for scope in users[name]))
            short[name] = next(each for each in _candidates() if each not in taken)
            for scope in users[name]:
                scope.taken.add(short[name])
        return short

    def _path(self, index: int) -> tuple[bool, bool, list[Scope]]:
        """Return whether a name is of this module alone, or shared; the scopes up to its place."""
        name, _ = self._tokens[index]
        scope = self._scopes[index]
        path = [scope]
        while name not in scope.declared and scope.outer is not None:
            scope = scope.outer
            path.append(scope)
        # A parameter and a name of the body may not be the same.
        path += [each.body for each in path if each.body]
        is_public = scope is self._top and name in self._public
        return name in scope.declared and not is_public, is_public, path


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return cast("bytes", node.text).decode()


def _ends_with_line(node: Node) -> bool:
    """Whether a statement has no semicolon, and is not the last one of a block."""
    ends = {each.type for each in (*node.children[-1:], node.next_sibling) if each}
    return not ends & {";", "}"}


def _children(node: Node, parent: str) -> Iterator[tuple[int, Node]]:
    """Yield the children of a node with their places, without parentheses that need not be there.

    The only parameter of an arrow function needs none, if it is just a name.
    """
    names = [each.type for each in node.named_children if each.type != "comment"]
    is_name = node.type == "formal_parameters" and parent == "arrow_function"
    omitted = {"(", ")"} if is_name and names == ["identifier"] else ()
    for index, child in enumerate(node.children):
        if child.type not in omitted:
            yield index, child


def _is_next(node: Node) -> bool:
    """Whether a declaration comes after another one, so that both are one."""
    before = node.prev_named_sibling
    while before is not None and before.type == "comment":
        before = before.prev_named_sibling
    return before is not None and before.type == "lexical_declaration"


def _is_assignment(node: Node) -> bool:
    """Whether a loop assigns to a variable that exists: `for (name of names)`."""
    return node.type == "for_in_statement" and node.child_by_field_name("kind") is None


def _names(pattern: Node) -> Iterator[str]:
    """Yield the names that a pattern or a list of parameters declares."""
    if pattern.type in NAMES:
        yield text_of(pattern)
    elif part := pattern.child_by_field_name("left") or pattern.child_by_field_name("value"):
        yield from _names(part)
    else:
        for part in pattern.named_children:
            yield from _names(part)


def _candidates() -> Iterator[str]:
    for length in (1, 2, 3):
        for letters in product(ascii_lowercase, repeat=length):
            if (name := "".join(letters)) not in KEYWORDS:
                yield name


def _needs_blank(last: str, kind: str, text: str) -> bool:
    """Whether a token and the text of the next one need a blank between them."""
    pair = last[-1] + text[0]
    if pair in {"++", "--", "//", "<!"} or (kind == "number" and pair[1] == "."):
        return True
    is_word = [each.isalnum() or each in "_$\\" or not each.isascii() for each in pair]
    return is_word[1] and (is_word[0] or kind in {"number", "regex"})
