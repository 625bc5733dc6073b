"""The compilation of a validated operation: from its selections to the plan of its execution."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLLeafType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    GraphQLString,
    GraphQLUnionType,
    OperationDefinitionNode,
)
from graphql.execution.collect_fields import (
    FieldDetailsList,
    FragmentDetails,
    GroupedFieldSet,
    collect_fields,
    collect_subfields,
)
from graphql.execution.values import VariableValues

from strawberry_compiled import strawberry_fields
from strawberry_compiled.arguments import ArgumentsConverter
from strawberry_compiled.completion import (
    Completer,
    LeafCompleter,
    OutputPosition,
    TextCompleter,
)
from strawberry_compiled.execution import FieldInfo
from strawberry_compiled.lists import ListCompleter
from strawberry_compiled.object_types import AbstractCompleter, ObjectCompleter
from strawberry_compiled.plan import (
    AttributeFieldPlan,
    FieldPlan,
    LeafFieldPlan,
    ObjectPlan,
    StrawberryFieldPlan,
)

INTROSPECTION_FIELDS = {"__schema", "__type"}


class PlanCompiler:
    """Compiles one operation for one combination of its `@skip` and `@include` variables."""

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: dict[str, FragmentDefinitionNode],
        conditions: dict[str, bool],
        *,
        hide_suggestions: bool,
    ) -> None:
        self._schema = schema
        self._operation = operation
        self._fragments = {name: FragmentDetails(node) for name, node in fragments.items()}
        # Selections depend on no other variable.
        self._conditions = VariableValues({}, conditions)
        self._hide_suggestions = hide_suggestions

    def compile_root(self, root_type: GraphQLObjectType) -> ObjectPlan | None:
        """Compile the operation; None if it selects introspection."""
        collected = collect_fields(
            self._schema,
            self._fragments,
            self._conditions,
            root_type,
            self._operation,
            self._hide_suggestions,
        )
        fields = collected.grouped_field_set
        if any(details[0].node.name.value in INTROSPECTION_FIELDS for details in fields.values()):
            return None
        return self._compile_fields(root_type, fields)

    def compile_subfields(
        self, details: FieldDetailsList, object_type: GraphQLObjectType
    ) -> ObjectPlan:
        """Compile the fields below a field for an object type."""
        collected = collect_subfields(
            self._schema,
            self._fragments,
            self._conditions,
            self._operation,
            object_type,
            details,
            self._hide_suggestions,
        )
        return self._compile_fields(object_type, collected.grouped_field_set)

    def _compile_fields(
        self, object_type: GraphQLObjectType, fields: GroupedFieldSet
    ) -> ObjectPlan:
        plans = []
        for key, details in fields.items():
            definition = self._schema.get_field(object_type, details[0].node.name.value)
            if definition is not None:
                plans.append(self._compile_field(object_type, key, definition, details))
        return ObjectPlan(object_type, plans)

    def _compile_field(
        self,
        parent_type: GraphQLObjectType,
        key: str,
        definition: GraphQLField,
        details: FieldDetailsList,
    ) -> FieldPlan:
        nodes = [one.node for one in details]
        info = FieldInfo(parent_type, definition, nodes)
        position = self._compile_position(definition.type, info, details)
        read = self._reader(parent_type, definition, nodes[0])
        if read is not None:
            if isinstance(position.completer, LeafCompleter):
                return LeafFieldPlan(key, info, position, read, position.completer)
            return AttributeFieldPlan(key, info, position, read)
        arguments = ArgumentsConverter(
            definition, nodes[0], hide_suggestions=self._hide_suggestions
        )
        call = strawberry_fields.direct_call(self._schema, definition)
        if call is not None:
            return StrawberryFieldPlan(key, info, arguments, position, call)
        return FieldPlan(key, info, arguments, position)

    def _reader(
        self, parent_type: GraphQLObjectType, definition: GraphQLField, node: FieldNode
    ) -> Callable[[Any], Any] | None:
        if node.name.value == "__typename":
            type_name = parent_type.name  # the same for every object of a type
            return lambda _source: type_name
        return None if definition.args else strawberry_fields.attribute_reader(definition)

    def _compile_position(
        self, output_type: GraphQLOutputType, info: FieldInfo, details: FieldDetailsList
    ) -> OutputPosition:
        nullable = _nullable(output_type)
        return OutputPosition(
            self._compile_completer(nullable, info, details),
            info.nodes,
            info.coordinate,
            is_nullable=nullable is output_type,
        )

    def _compile_completer(
        self, output_type: GraphQLOutputType, info: FieldInfo, details: FieldDetailsList
    ) -> Completer:
        if isinstance(output_type, GraphQLList):
            item = self._compile_position(output_type.of_type, info, details)
            completer = item.completer
            plans = completer.plans if isinstance(completer, ObjectCompleter) else {}
            return ListCompleter(item, plans, info.nodes, info.coordinate)
        if isinstance(output_type, GraphQLObjectType):
            return ObjectCompleter(output_type, info, partial(self.compile_subfields, details))
        if isinstance(output_type, GraphQLInterfaceType | GraphQLUnionType):
            subfields = partial(self.compile_subfields, details)
            return AbstractCompleter(self._schema, output_type, info, subfields)
        if output_type is GraphQLString:
            return TextCompleter(GraphQLString)
        return LeafCompleter(cast("GraphQLLeafType", output_type))


def _nullable(output_type: GraphQLOutputType) -> GraphQLOutputType:
    return output_type.of_type if isinstance(output_type, GraphQLNonNull) else output_type
