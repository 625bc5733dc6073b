"""The conversion of variables and arguments, specialized for a document."""
