"""The building blocks of the schema that every capability uses."""
