"""The client guides quote the examples as they are, and cover every refusal."""

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    NameNode,
    Visitor,
    parse,
    validate,
    visit,
)

from conformance.examples.programs import EXPECTED_LINES, PYTHON_PROGRAM
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import (
    ADMIN_EMAIL,
    ADMIN_PASSWORD,
    AppProcess,
    app_environment,
    free_port,
)

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides" / "clients"
REFUSALS = GUIDES / "refusals.md"
STALE = "run `npm ci --ignore-scripts && npm run codegen` in examples/typescript"
_EXCERPT = re.compile(r"^<!-- from: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def excerpts() -> list[tuple[str, str, str]]:
    """Return the page, the example file and the text of each excerpt."""
    return [
        (page.name, match[1], match[2])
        for page in sorted(GUIDES.glob("*.md"))
        for match in _EXCERPT.finditer(page.read_text())
    ]


def contains(text: str, excerpt: str) -> bool:
    """Return whether the lines of an excerpt stand in a text, at any common indentation."""
    lines, length = text.splitlines(), len(excerpt.splitlines())
    windows = ("\n".join(lines[start : start + length]) for start in range(len(lines)))
    return textwrap.dedent(excerpt).strip() in (
        textwrap.dedent(window).strip() for window in windows
    )


@pytest.mark.parametrize(("page", "path", "excerpt"), excerpts())
def test_every_excerpt_is_in_the_example(page: str, path: str, excerpt: str) -> None:
    text = (ROOT / path).read_text()
    assert contains(text, excerpt), f"{page} differs from {path}: copy the lines again"


def test_the_check_of_excerpts_notices_a_change() -> None:
    assert len(excerpts()) > 15
    assert contains("a\n  b\n  c\n", "b\nc\n")
    assert not contains("a\n  b\n  c\n", "b\n c\n")
    assert not contains("a\n  b\n  c\n", "b\nd\n")


def test_the_table_of_refusals_covers_every_code() -> None:
    codes = executable_schema.type_map["RefusalCode"]
    assert isinstance(codes, GraphQLEnumType)
    listed = re.findall(r"^\| `([A-Z_]+)`", REFUSALS.read_text(), re.MULTILINE)
    expected = {*codes.values, *ErrorCode}
    assert [f"add a row for `{code}` to {REFUSALS.name}" for code in expected - set(listed)] == []
    assert [f"remove the row of `{code}`: it is no code" for code in set(listed) - expected] == []
    assert len(listed) == len(set(listed)), "a code has two rows"


def test_every_row_has_a_text_for_the_user_and_an_action() -> None:
    rows = re.findall(r"^\| `.*$", REFUSALS.read_text(), re.MULTILINE)
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    assert [row for row in cells if len(row) != 3 or not all(row)] == []


def test_every_operation_of_the_examples_fits_the_schema() -> None:
    python = (ROOT / "examples/python/slotlock_example/operations.py").read_text()
    documents = re.findall(r'= """(.*?)"""', python, re.DOTALL)
    assert len(documents) > 10
    documents.append((ROOT / "examples/typescript/src/operations.graphql").read_text())
    assert [error for text in documents for error in validate(executable_schema, parse(text))] == []


class NameCollector(Visitor):
    """Collects the names of a document in order: of fields, arguments, types and variables."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def enter_name(self, node: NameNode, *_: object) -> None:
        """Add a name."""
        self.found.append(node.value)


def test_the_generated_types_of_typescript_fit_the_schema_and_the_operations() -> None:
    source = ROOT / "examples/typescript/src"
    text = (source / "generated.ts").read_text()
    types = re.findall(
        r"^/\*\* (.*) \*/\nexport type (\w+) = ?{?\n((?: .*\n)+)", text, re.MULTILINE
    )
    assert len(types) > 10
    for description, name, body in types:
        shown = executable_schema.type_map[name]
        assert isinstance(shown, GraphQLEnumType | GraphQLInputObjectType)
        parts = shown.values if isinstance(shown, GraphQLEnumType) else shown.fields
        members = re.findall(r"/\*\* (.*) \*/\n  (?:\| ')?(\w+)", body)
        expected = {(part.description, key) for key, part in parts.items()}
        assert (description, {*members}) == (shown.description, expected), STALE
    documents = "".join(re.findall(r"^export const \w+ = (.*) as unknown", text, re.MULTILINE))
    names = NameCollector()
    visit(parse((source / "operations.graphql").read_text()), names)
    assert re.findall(r'"kind":"Name","value":"(\w+)"', documents) == names.found, STALE


@pytest.fixture
def queue_app(servers: EmbeddedServers, tmp_path: Path) -> Iterator[AppProcess]:
    """Yield an app alone in its Redis: an app of another database would take its tickets."""
    own_redis = replace(servers, redis_url=f"{servers.redis_url}/8")
    with forked_app(app_environment(own_redis, "client_guides"), tmp_path / "app") as running:
        yield running


def run_example(url: str, password: str = ADMIN_PASSWORD) -> "subprocess.CompletedProcess[str]":
    """Run the Python example."""
    return subprocess.run(
        PYTHON_PROGRAM.command,
        cwd=PYTHON_PROGRAM.home,
        env={
            **os.environ,
            "SLOTLOCK_URL": f"{url}/graphql",
            "SLOTLOCK_ADMIN_EMAIL": ADMIN_EMAIL,
            "SLOTLOCK_ADMIN_PASSWORD": password,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_the_python_example_completes_its_tour(queue_app: AppProcess) -> None:
    completed = run_example(queue_app.url)
    assert completed.returncode == 0, completed.stderr
    for line in EXPECTED_LINES:
        assert re.search(f"^{line}$", completed.stdout, re.MULTILINE), line


def test_the_python_example_says_that_the_password_is_wrong_or_that_no_server_responds(
    app: AppProcess,
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    for url, reason in ((app.url, "INVALID_CREDENTIALS: "), (nowhere, f"{nowhere}/graphql does")):
        completed = run_example(url, "wrong")
        assert completed.returncode == 1
        (line,) = completed.stderr.splitlines()
        assert line.startswith(reason)
