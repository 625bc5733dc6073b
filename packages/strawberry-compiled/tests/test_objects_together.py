"""Objects whose fields are plain attributes are completed together: results as of graphql-core."""

import asyncio
from collections.abc import Generator
from enum import Enum
from inspect import isawaitable
from typing import Any

import pytest
import strawberry
from graphql import ExecutionResult, GraphQLSchema, Undefined, execute, parse
from hypothesis import event, given, settings
from hypothesis import strategies as st

from comparison import comparable
from strawberry_compiled.execution import ResultLimit
from strawberry_compiled.lists import MIN_OBJECTS
from strawberry_compiled.operation import CompiledOperation, compile_operation
from strawberry_compiled.plan import ObjectPlan


@strawberry.enum
class Color(Enum):
    RED = "red"
    BLUE = strawberry.enum_value("blue", name="AZURE")


@strawberry.type
class Tile:
    number: int
    label: str
    name: str | None = None
    color: Color | None = None


@strawberry.type
class SmallTile(Tile):
    pass


class Query:
    tiles: list[Tile | None] | None
    required_tiles: list[Tile] | None


TEXT = """{
  tiles { __typename number text: label name color }
  requiredTiles { number name color }
}"""
SCHEMA: GraphQLSchema = strawberry.Schema(strawberry.type(Query), types=[SmallTile])._schema


def build_tile(number: int, name: str | None = "name", color: Color | None = Color.RED) -> Tile:
    """Build a tile with plain values."""
    return Tile(number=number, label=f"tile {number}", name=name, color=color)


PLAIN = [build_tile(number) for number in range(MIN_OBJECTS)]


class Later:
    """Awaits to a value, each time that it is awaited."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __await__(self) -> Generator[None, None, object]:
        yield
        return self._value


class Source:
    """The root value."""

    def __init__(self, tiles: list[Any]) -> None:
        self.tiles = self.required_tiles = tiles


def run(operation: CompiledOperation, tiles: list[Any], **options: Any) -> ExecutionResult:
    """Execute the operation for a list of tiles."""

    async def run_in_loop() -> ExecutionResult:
        result: Any = operation.execute(root_value=Source(tiles), **options)
        return await result if isawaitable(result) else result  # type: ignore[no-any-return]

    return asyncio.run(run_in_loop())


def run_reference(tiles: list[Any]) -> ExecutionResult:
    """Execute the document for a list of tiles with graphql-core."""

    async def run_in_loop() -> ExecutionResult:
        result: Any = execute(SCHEMA, parse(TEXT), Source(tiles))
        return await result if isawaitable(result) else result  # type: ignore[no-any-return]

    return asyncio.run(run_in_loop())


def warm_operation() -> CompiledOperation:
    """Compile the operation, and let it learn the types of plain tiles."""
    operation = compile_operation(SCHEMA, parse(TEXT))
    assert operation is not None
    run(operation, PLAIN)
    return operation


RARE = st.sampled_from([None, Undefined, ValueError("stored"), Later("later"), Later(None), 2**40])
NUMBERS = st.integers(-5, 5) | st.integers(-5, 5) | st.booleans() | st.just("x") | RARE
NAMES: st.SearchStrategy[Any] = (
    st.text(max_size=3) | st.none() | st.none() | st.integers() | st.just([]) | RARE
)
COLORS = st.sampled_from([*Color, *Color, None, "red"]) | RARE


@st.composite
def tile_lists(draw: st.DrawFn) -> list[Any]:
    """Draw tiles of which a few are not like the others."""
    tiles: list[Any] = [build_tile(n) for n in range(draw(SIZES))]
    for tile in draw(st.lists(st.sampled_from(tiles), max_size=3)) if tiles else ():
        name, values = draw(st.sampled_from(FIELDS))
        setattr(tile, name, draw(values))
    for _ in range(draw(st.sampled_from([0, 0, 1])) if tiles else 0):
        index = draw(st.integers(0, len(tiles) - 1))
        match draw(st.sampled_from(["small", "cast", "unread", "other"])):
            case "small":
                tiles[index] = SmallTile(number=1, label="small")
            case "cast":
                strawberry.cast(SmallTile, tiles[index])
            case "unread" if hasattr(tiles[index], "label"):
                del tiles[index].label
            case _:
                tiles[index] = draw(st.sampled_from([None, 5, ValueError("item"), Later(PLAIN[0])]))
    return tiles


SIZES = st.integers(0, MIN_OBJECTS + 2)
FIELDS = [("number", NUMBERS), ("label", NAMES), ("name", NAMES), ("color", COLORS)]


# When a sibling fails, both executors cancel coroutines that have not begun.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@given(st.lists(tile_lists(), min_size=1, max_size=3))
@settings(max_examples=120, deadline=None)
def test_results_and_errors_equal_those_of_graphql_core(lists: list[list[Any]]) -> None:
    operation = warm_operation()
    for tiles in lists:
        expected = run_reference(tiles)
        event("errors" if expected.errors else "data only")
        assert comparable(run(operation, tiles)) == comparable(expected)


@pytest.fixture
def executed_alone(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the list of the objects that are executed one by one."""
    sources: list[object] = []
    execute_alone = ObjectPlan.execute

    def recorded(plan: ObjectPlan, source: Any, *others: Any) -> Any:
        sources.append(source)
        return execute_alone(plan, source, *others)

    monkeypatch.setattr(ObjectPlan, "execute", recorded)
    return sources


@pytest.mark.parametrize("name", ["name", None])
def test_plain_objects_are_not_executed_one_by_one(
    executed_alone: list[object], name: str | None
) -> None:
    operation = warm_operation()
    executed_alone.clear()
    tiles = [*PLAIN, build_tile(7, name, Color.BLUE if name else None)]
    assert comparable(run(operation, tiles)) == comparable(run_reference(tiles))
    assert [type(source) for source in executed_alone] == [Source]


def test_control_an_object_with_an_error_is_executed_alone(executed_alone: list[object]) -> None:
    operation = warm_operation()
    executed_alone.clear()
    tiles = [*PLAIN, build_tile(2**40)]
    assert comparable(run(operation, tiles)) == comparable(run_reference(tiles))
    assert executed_alone[1 : len(tiles) + 1] == tiles


def test_an_attribute_that_creates_coroutines_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created: list[object] = []

    async def find_name() -> str:
        return "found"

    def create(_: Tile) -> Any:
        created.append(coroutine := find_name())
        return coroutine

    monkeypatch.setattr(Tile, "name", property(create), raising=False)
    tiles: list[Any] = [object.__new__(Tile) for _ in range(MIN_OBJECTS)]
    for number, tile in enumerate(tiles):
        tile.number, tile.label, tile.color = number, "label", None
    operation = compile_operation(SCHEMA, parse("{ tiles { number name } }"))
    assert operation is not None
    for count in (MIN_OBJECTS, 2 * MIN_OBJECTS, 3 * MIN_OBJECTS):
        data = run(operation, tiles).data
        assert data is not None
        assert [each["name"] for each in data["tiles"]] == ["found"] * MIN_OBJECTS
        assert len(created) == count


def test_objects_count_as_values_together_and_alone() -> None:
    def limited(operation: CompiledOperation, max_values: int) -> tuple[str, list[Any]]:
        limit = ResultLimit(lambda: ValueError("too large"), max_values=max_values)
        return comparable(run(operation, PLAIN, limit=limit))

    warm = warm_operation()
    count = 2 + MIN_OBJECTS * (1 + 5 + 1 + 3)
    for max_values in range(2, count + 2):
        cold = compile_operation(SCHEMA, parse(TEXT))
        assert cold is not None
        assert limited(warm, max_values) == limited(cold, max_values)
    assert limited(warm, count - 1) != limited(warm, count)
    assert limited(warm, count) == limited(warm, count + 1)
