"""What plans do not support, how many there are, and the checks that they make."""

from inspect import isawaitable
from typing import Any

import pytest
from graphql import ExecutionResult, GraphQLSchema, Undefined, build_schema, parse

from strawberry_compiled import operation
from strawberry_compiled.compiler import PlanCompiler
from strawberry_compiled.execution import ResultLimit
from strawberry_compiled.operation import (
    MAX_PLANS,
    CompiledOperation,
    compile_operation,
)

SCHEMA = build_schema("""
directive @upper on FIELD
input Tree { left: Tree }
type Item { name: String, items: [Item!] }
type Query { item: Item, items: [Item!], tree(tree: Tree): String, rows: [[Int!]!] }
type Mutation { first: Item, second: String }
""")
ROOT: dict[str, Any] = {
    "item": {"name": "one", "items": [{"name": "two"}, {"name": "three"}]},
    "items": [{"name": "four"}],
    "rows": [[1, 2], []],
    "first": {"name": "five"},
    "second": "six",
}


def compiled(text: str, schema: GraphQLSchema = SCHEMA) -> CompiledOperation:
    """Compile a document that plans support."""
    plan = compile_operation(schema, parse(text))
    assert plan is not None
    return plan


def execute(plan: CompiledOperation, **options: Any) -> ExecutionResult:
    """Execute an operation without asynchronous resolvers."""
    result = plan.execute(root_value=ROOT, **options)
    assert isinstance(result, ExecutionResult)
    return result


@pytest.mark.parametrize(
    "text",
    [
        "{ item { name @upper } }",
        "{ ...F } fragment F on Query { item { name @upper } }",
        "query($tree: Tree) { tree(tree: $tree) }",
        "subscription { item }",
        "query A { rows } query B { rows }",
        "fragment F on Query { rows }",
    ],
)
def test_unsupported_operations_are_not_compiled(text: str) -> None:
    assert compile_operation(SCHEMA, parse(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "{ __schema { description } }",
        '{ ...F rows } fragment F on Query { __type(name: "Item") { name } }',
    ],
)
def test_introspection_has_no_plan(text: str) -> None:
    assert compiled(text).execute(root_value=ROOT) is None


def test_a_condition_that_is_null_has_no_plan() -> None:
    plan = compiled("query($if: Boolean = true) { rows @skip(if: $if) }")
    assert plan.execute(variable_values={"if": None}) is None
    assert execute(plan, variable_values={}).data == {}


def test_the_operation_is_chosen_by_its_name() -> None:
    document = parse("query A { rows } query B { item { name } }")
    plan = compile_operation(SCHEMA, document, "B")
    assert plan is not None
    assert execute(plan).data == {"item": {"name": "one"}}


def test_the_number_of_plans_of_an_operation_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    compilations: list[dict[str, bool]] = []

    class CountingCompiler(PlanCompiler):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            compilations.append(arguments[3])
            super().__init__(*arguments, **options)

    monkeypatch.setattr(operation, "PlanCompiler", CountingCompiler)
    names = [f"v{n}" for n in range(5)]
    fields = " ".join(f"{name}: rows @include(if: ${name})" for name in names)
    definitions = ", ".join(f"${name}: Boolean!" for name in names)
    plan = compiled(f"query({definitions}) {{ {fields} }}")
    for bits in [*range(32), 31, 31, 16]:
        variables = {name: bool(bits >> n & 1) for n, name in enumerate(names)}
        expected = {name: [[1, 2], []] for name in names if variables[name]}
        assert execute(plan, variable_values=variables).data == expected
    assert len(compilations) == 32
    assert len(plan._plans) == MAX_PLANS


def test_the_middleware_gets_each_root_field_and_no_other() -> None:
    seen: list[tuple[str, object]] = []

    def middleware(resolve: Any, source: object, info: Any, **arguments: Any) -> Any:
        seen.append((info.path.key, arguments))
        return resolve(source, info, **arguments)

    plan = compiled("mutation { a: first { name } __typename second }")
    result = execute(plan, middleware=middleware)
    assert result == ExecutionResult(
        {"a": {"name": "five"}, "__typename": "Mutation", "second": "six"}, None
    )
    assert seen == [("a", {}), ("__typename", {}), ("second", {})]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{ rows }", 1 + 2 + 2),
        ("{ item { name items { name n: name } } }", 1 + 2 + 2 + 4),
        ("{ items { name } item { __typename } }", 2 + 1 + 1 + 1),
    ],
)
def test_fields_and_list_items_count_towards_the_limit(text: str, values: int) -> None:
    def create_error() -> Exception:
        return ValueError("too large")

    assert (
        execute(compiled(text), limit=ResultLimit(create_error, max_values=values)).errors is None
    )
    errors = execute(compiled(text), limit=ResultLimit(create_error, max_values=values - 1)).errors
    assert [error.message for error in errors or ()] == ["too large"]


async def test_a_resolver_can_await_and_track_work_through_its_info() -> None:
    finished: list[str] = []

    async def work(name: str) -> str:
        finished.append(name)
        return name

    async def rows(_info: Any) -> list[list[int]]:
        _info.async_helpers.track([work("tracked"), None])
        assert await _info.async_helpers.gather([work("a"), work("b")]) == ["a", "b"]
        return []

    result = compiled("{ rows }").execute(root_value={"rows": rows})
    assert isawaitable(result)
    assert (await result).data == {"rows": []}
    assert finished == ["tracked", "a", "b"]


def test_undefined_is_null() -> None:
    result = compiled("{ item { name } }").execute(root_value={"item": Undefined})
    assert result == ExecutionResult({"item": None}, None)
