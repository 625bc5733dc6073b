"""The descriptions of everything in the schema."""

from collections.abc import Iterator

from graphql import GraphQLEnumType, GraphQLNamedType, GraphQLSchema, is_specified_scalar_type


def own_types(schema: GraphQLSchema) -> dict[str, GraphQLNamedType]:
    """Return the types that the schema defines, without those of the specification, by name."""
    return {
        name: type_
        for name, type_ in schema.type_map.items()
        if not name.startswith("__") and not is_specified_scalar_type(type_)
    }


def descriptions(schema: GraphQLSchema) -> Iterator[tuple[str, str | None]]:
    """Yield the coordinate and description of each type, field, argument, value and directive."""
    for name, type_ in own_types(schema).items():
        yield name, type_.description
        parts = type_.values if isinstance(type_, GraphQLEnumType) else getattr(type_, "fields", {})
        for part_name, part in parts.items():
            yield f"{name}.{part_name}", part.description
            for argument_name, argument in getattr(part, "args", {}).items():
                yield f"{name}.{part_name}({argument_name}:)", argument.description
    for directive in schema.directives:
        yield f"@{directive.name}", directive.description
        for argument_name, argument in directive.args.items():
            yield f"@{directive.name}({argument_name}:)", argument.description


def undescribed(schema: GraphQLSchema) -> list[str]:
    """Return the coordinates without a description."""
    return [name for name, text in descriptions(schema) if not (text or "").strip()]
