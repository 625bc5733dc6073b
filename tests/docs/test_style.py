"""The style rules that a linter cannot check: line length, folder size and the words to avoid."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from graphql import parse
from graphql.language import NameNode, Visitor, visit

from tests.tiers import SLOW
from tools.mutations import load_mutants

ROOT = Path(__file__).parents[2]
MARKDOWN = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("packages/*/*.md"), *(ROOT / "docs").rglob("*.md")]
)
CODE_FOLDERS = ("slotlock", "packages", "tests", "bench", "conformance", "examples/python", "tools")
MAX_LINE_LENGTH = 160
MAX_MODULES = 12

# The private vocabulary of earlier versions; docs/decisions/0028 has the reasons.
IDENTIFIER_WORD = re.compile(
    r"aside|away|beside|clerk|deeds?|desk|errand|heads|hear[ds]?|hearing|keep(s|ing)?|kept|lately"
    r"|look(s|ed|ing)?|offices?|part(y|ies)|people|persons?|poke|slips?|tell(s|ing)?|told|troupe"
    r"|turn(s|ed|ing)?|whoever|organis\w*"
)
TEXT_WORD = re.compile(
    r"aside|clerk|desk|errand|kept|lately|people|persons?|poke|told|troupe|whoever|organis\w*",
    re.IGNORECASE,
)
COMMENT = re.compile(r"#.*")
# These words are allowed inside a longer name.
FORBIDDEN_NAMES = frozenset({"mine", "theirs", "whose", "who"})
# Names that others define: RFC 6455 (close code 1001), uvicorn and redis-py.
ALLOWED_NAMES = frozenset({"GOING_AWAY", "keep_subprocess_alive", "socket_keepalive"})
# The convention of Hypothesis, and a name that would hide a built-in exception.
ALLOWED_ALIASES = {
    "hypothesis.strategies": "st",
    "redis.exceptions.ConnectionError": "RedisConnectionError",
}
# The nodes that define or bind a name, and where it is.
NAME_ATTRIBUTES: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.alias: "asname",
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"),
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
READ_NODES = {*NAME_ATTRIBUTES, *DOCUMENTED, ast.Import, ast.ImportFrom}
_NAME = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# To parse all modules takes some seconds, so only those that may break a rule are parsed.
_MAY_RENAME = re.compile(r"^\s*(?:from|import)\s.*\sas\s|^\s+\w+ as \w+,$", re.MULTILINE)


@cache
def forbidden_words(name: str) -> list[str]:
    """Return the parts of an identifier, by underscore and camel case, that are not allowed."""
    if name in ALLOWED_NAMES:
        return []
    if name in FORBIDDEN_NAMES:
        return [name]
    # "Keep alive" is a term of HTTP.
    name = re.sub("keep_?alive", "", name, flags=re.IGNORECASE)
    parts = [part.lower() for part in _PART.findall(name)]
    return [part for part in parts if IDENTIFIER_WORD.fullmatch(part)]


def read_nodes(source: str) -> list[ast.AST]:
    """Return the nodes of a module that bind a name, import something or have a docstring."""
    return [node for node in ast.walk(ast.parse(source)) if type(node) in READ_NODES]


@cache
def python_files() -> list[Path]:
    """Return all Python files of the project, without generated folders."""
    return [path for folder in CODE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def defined_names(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that a module defines or binds."""
    for node in nodes:
        if attribute := NAME_ATTRIBUTES.get(type(node)):
            name = getattr(node, attribute)
            if name and not isinstance(getattr(node, "ctx", None), ast.Load | ast.Del):
                yield getattr(node, "lineno", 1), name


def renaming_imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line of each import under another name, and the two names."""
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        package = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
        for imported in node.names:
            full_name, alias = package + imported.name, imported.asname
            if alias and alias not in (full_name.split(".")[-1], ALLOWED_ALIASES.get(full_name)):
                yield node.lineno, f"{full_name} as {alias}"


def public_classes(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the name of each public class of a module, and whether it is a type of GraphQL."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            yield node.name, any(name.startswith("strawberry.") for name in decorators)


def texts(source: str, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring and comment of a module."""
    for node in nodes:
        if isinstance(node, DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                yield getattr(node, "lineno", 1), docstring
    for number, line in enumerate(source.splitlines(), 1):
        if comment := COMMENT.search(line):
            yield number, comment[0]


def word_hits(path: Path) -> Iterator[str]:
    """Yield each use of a forbidden word in a Python file."""
    source, place = path.read_text(), path.relative_to(ROOT)
    for word in forbidden_words(path.stem):
        yield f"{place}: module name: {word}"
    names = set(_NAME.findall(source))
    if not any(forbidden_words(name) or TEXT_WORD.search(name) for name in names):
        return
    nodes = read_nodes(source)
    for line, name in sorted(set(defined_names(nodes))):
        for word in forbidden_words(name):
            yield f"{place}:{line}: {name}: {word}"
    for line, text in texts(source, nodes):
        for word in forbidden_text_words(text):
            yield f"{place}:{line}: text: {word}"


def forbidden_text_words(text: str) -> list[str]:
    """Return the words of a text that are not allowed."""
    return [word for word in re.findall(r"[A-Za-z]+", text) if TEXT_WORD.fullmatch(word)]


def all_word_hits() -> list[str]:
    """Return each use of a forbidden word in the code."""
    return [hit for path in python_files() for hit in word_hits(path)]


def test_no_line_of_a_page_is_too_long() -> None:
    assert [
        f"{page.relative_to(ROOT)}:{number}"
        for page in MARKDOWN
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > MAX_LINE_LENGTH
    ] == []


def test_no_text_installs_slotlock_by_its_name() -> None:
    # No index has it, so that somebody else may register it.
    by_name = re.compile(
        r"pip install [^`\n]*(?<![/\w.-])['\"]?(slotlock|strawberry-compiled)\b(?!-\d)"
    )
    files = [*python_files(), *MARKDOWN, ROOT / "Makefile", ROOT / "pyproject.toml"]
    assert [str(file) for file in files if by_name.search(file.read_text())] == []


def test_no_folder_has_too_many_modules() -> None:
    too_large = {}
    for top in CODE_FOLDERS:
        for folder in (ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())):
            modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            if len(modules) > MAX_MODULES:
                too_large[str(folder.relative_to(ROOT))] = len(modules)
    assert too_large == {}


def test_every_slow_test_exists() -> None:
    missing = []
    for name in SLOW:
        path, _, test = name.partition("::")
        files = list((ROOT / "tests").glob(f"{path}*"))
        if not files or (test and f"def {test.partition('[')[0]}" not in files[0].read_text()):
            missing.append(name)
    assert missing == []


def test_the_place_of_every_fault_exists_once() -> None:
    for mutant in load_mutants():
        assert mutant.text(ROOT)  # or it names what is missing
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).exists(), test
            assert not name or f"def {name}(" in (ROOT / file).read_text(), test


def test_no_identifier_or_comment_uses_a_forbidden_word() -> None:
    assert all_word_hits() == []


def test_no_import_renames_a_module_or_a_name() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {names}"
        for path in python_files()
        if _MAY_RENAME.search(source := path.read_text())
        for line, names in renaming_imports(read_nodes(source))
    ] == []


def test_no_call_spreads_a_literal_over_its_parameters() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files()
        if "*(" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and any(
            isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple)
            for each in node.args
        )
    ] == []


def test_no_two_classes_share_a_name_except_a_graphql_type_and_the_class_it_shows() -> None:
    names = {True: Counter[str](), False: Counter[str]()}
    for path in sorted((ROOT / "slotlock").rglob("*.py")):
        in_graphql = path.is_relative_to(ROOT / "slotlock" / "graphql")
        for name, is_graphql_type in public_classes(ast.parse(path.read_text())):
            assert in_graphql or not is_graphql_type, f"{path}: {name}"
            names[is_graphql_type][name] += 1
    assert len(names[True]) > 100
    assert len(names[False]) > 100
    assert [name for counts in names.values() for name, n in counts.items() if n > 1] == []


class _SchemaNames(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_name(self, node: NameNode, *_: object) -> None:
        """Collect a name."""
        self.names.add(node.value)


def test_no_schema_name_uses_a_forbidden_word() -> None:
    collected = _SchemaNames()
    visit(parse((ROOT / "schema.graphql").read_text()), collected)
    assert [name for name in sorted(collected.names) if forbidden_words(name)] == []


def test_no_metric_name_uses_a_forbidden_word() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "slotlock").rglob("*.py"))]
    names = {name for source in sources for name in re.findall(r'"(slotlock_\w+)"', source)}
    assert len(names) > 10
    assert [name for name in sorted(names) if forbidden_words(name)] == []


def test_no_page_uses_a_forbidden_word() -> None:
    for page in MARKDOWN:
        prose = re.sub(r"`[^`\n]*`", "", page.read_text())
        assert forbidden_text_words(prose) == [], page
