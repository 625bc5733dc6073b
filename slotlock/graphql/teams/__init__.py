"""Teams in the schema: users who may book for each other."""
