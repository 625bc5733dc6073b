"""The configuration of schemathesis: the ids, cursors and sizes that it also tries."""

import json
from collections.abc import Iterator

from graphql import (
    GraphQLInputType,
    GraphQLSchema,
    get_nullable_type,
    is_input_object_type,
    is_list_type,
)

from conformance.fuzz.seeds import Seeds

ID_KINDS = {
    "slotId": "slots",
    "campaignId": "campaigns",
    "seriesId": "series",
    "bookingId": "bookings",
    "teamId": "teams",
    "userId": "users",
    "by": "users",
}
FIELD_ID_KINDS = {"slot": "slots", "campaign": "campaigns", "ticket": "tickets"}
# The server rejects nearly all 32-bit numbers and texts that schemathesis generates by itself.
PLAIN_VALUES: dict[str, list[str] | list[int]] = {
    "first": [1, 2, 100],
    "waitMs": [0, 1, 100],
    "idempotencyKey": ["one", "two", "three"],
}
PLAIN_PROBABILITY, SEEDED_PROBABILITY = 0.8, 0.5


def config(schema: GraphQLSchema, seeds: Seeds) -> str:
    """Return the text of schemathesis.toml."""
    all_ids = [seed for ids in seeds.ids.values() for seed in ids]
    values: dict[str, list[str] | list[int]] = {**seeds.ids, "all_ids": [*all_ids]}
    values |= PLAIN_VALUES
    values |= {f"cursor_{name}": [cursor] for name, cursor in seeds.cursors.items()}
    bindings = [
        _binding(f"*.*.{path}", name, PLAIN_PROBABILITY)
        for name in PLAIN_VALUES
        for path in (name, f"input.{name}")
    ]
    bindings += [
        _binding(f"*.{name}.after", f"cursor_{name}", SEEDED_PROBABILITY) for name in seeds.cursors
    ]
    for field, path in _ids(schema):
        kind = ID_KINDS.get(path.rpartition(".")[2]) or FIELD_ID_KINDS.get(field, "all_ids")
        bindings.append(_binding(f"*.{field}.{path}", kind, SEEDED_PROBABILITY))
    dictionaries = [
        f"[dictionaries.{name}]\nvalues = {json.dumps(entries)}\n"
        for name, entries in values.items()
    ]
    return "".join([*dictionaries, "[parameters]\n", *bindings])


def _binding(path: str, dictionary: str, probability: float) -> str:
    return f'"{path}" = {{ dictionary = "{dictionary}", probability = {probability} }}\n'


def _ids(schema: GraphQLSchema) -> Iterator[tuple[str, str]]:
    """Yield each root field with an id argument, and the path of the id in its arguments."""
    for root in (schema.query_type, schema.mutation_type):
        for name, field in root.fields.items() if root else ():
            for argument_name, argument in field.args.items():
                for path in _paths(argument.type, argument_name):
                    yield name, path


def _paths(type_: GraphQLInputType, path: str) -> Iterator[str]:
    plain = get_nullable_type(type_)
    if is_list_type(plain):
        yield from _paths(plain.of_type, f"{path}[*]")
    elif is_input_object_type(plain):
        for name, field in plain.fields.items():
            yield from _paths(field.type, f"{path}.{name}")
    elif str(plain) == "ID":
        yield path
