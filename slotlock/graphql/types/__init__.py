"""The types of the schema, mirrors of the domain's values."""
