"""The root types of the schema, and the schema itself."""
