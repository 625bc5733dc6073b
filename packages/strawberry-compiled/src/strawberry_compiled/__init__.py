"""Compiled execution of GraphQL operations, for schemas of Strawberry and graphql-core.

`compile_operation` compiles an operation of a valid document once. The `CompiledOperation` then
executes it again and again, with the results of graphql-core's `execute` in less time.
"""

from strawberry_compiled.execution import ResultLimit, RootFieldMiddleware
from strawberry_compiled.operation import CompiledOperation, compile_operation
from strawberry_compiled.strawberry_fields import CompiledInfo

__all__ = [
    "CompiledInfo",
    "CompiledOperation",
    "ResultLimit",
    "RootFieldMiddleware",
    "compile_operation",
]
