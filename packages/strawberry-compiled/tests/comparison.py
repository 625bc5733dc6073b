"""The execution of a document by graphql-core and by its plan, and the comparison of results."""

import json
from inspect import isawaitable
from typing import Any

from graphql import DocumentNode, ExecutionResult, GraphQLSchema, execute

from strawberry_compiled.operation import compile_operation


def comparable(result: ExecutionResult) -> tuple[str, list[Any]]:
    """Return the data with the order of its keys, and the errors in any order."""
    errors = [
        json.dumps([one.message, one.path, [list(place) for place in one.locations or ()]])
        for one in result.errors or ()
    ]
    return json.dumps(result.data, default=repr), sorted(errors)


async def run_reference(
    schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any], context: object
) -> ExecutionResult:
    """Execute a document with graphql-core."""
    result = execute(
        schema,
        document,
        context_value=context,
        variable_values=variables,
        max_coercion_errors=5,
    )
    return await result if isawaitable(result) else result


async def run_compiled(
    schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any], context: object
) -> ExecutionResult | None:
    """Execute a document with its plan; None if plans do not support it."""
    operation = compile_operation(schema, document, max_coercion_errors=5)
    if operation is None:
        return None
    result = operation.execute(context_value=context, variable_values=variables)
    return await result if isawaitable(result) else result
