"""Print what follows from a declared refusal or outcome: `python -m tools.explain HoldCooldown`."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from graphql import GraphQLUnionType, print_type

from slotlock.domain.shared.declare import Declaration, declarations
from slotlock.graphql.core.outcomes import type_of
from slotlock.graphql.schema.schema import executable_schema
from slotlock.infrastructure.mongo.idempotency.codec import TYPE_TAGS

ROOT = Path(__file__).parents[1]


def explain(declared: type, declaration: Declaration) -> Iterator[str]:
    """Yield the lines about one declaration."""
    path = Path(inspect.getfile(declared)).relative_to(ROOT)
    yield f"declared  {path}:{inspect.getsourcelines(declared)[1]}"
    if message := declaration.message:
        yield f"code      {declaration.code}"
        yield f"message   {message.own}"
        if not message.own == message.other == message.neutral:
            yield f"  others  {message.other}"
            yield f"  unknown {message.neutral}"
    yield f"label     {declared.__name__}  (of the metrics, if its use case is counted)"
    tag = next((tag for tag, stored in TYPE_TAGS.items() if stored is declared), "none")
    yield f"tag       {tag}  (of stored records)"
    name = type_of(declared).__strawberry_definition__.name  # type: ignore[attr-defined]
    unions = sorted(
        union.name
        for union in executable_schema.type_map.values()
        if isinstance(union, GraphQLUnionType) and name in {member.name for member in union.types}
    )
    yield f"unions    {', '.join(unions) or 'none'}"
    yield ""
    yield print_type(executable_schema.type_map[name])


def main(names: list[str]) -> int:
    """Print what follows from the declarations with these names. Return 1 if there is none."""
    found = [
        (declared, declaration)
        for declared, declaration in declarations.items()
        if {declared.__name__, declaration.name} & set(names)
    ]
    for declared, declaration in found:
        print(*explain(declared, declaration), sep="\n")
    if not found:
        print("Please name declared classes:", *sorted(each.name for each in declarations.values()))
    return 0 if found else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
