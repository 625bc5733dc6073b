"""The types of the schema, mirrors of the domain's values."""

# Describes the domain's enums, whichever type that uses them is imported first.
import slotlock.graphql.types.enums  # noqa: F401
