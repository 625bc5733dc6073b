"""schemathesis over the whole schema, by somebody who is signed in and by nobody."""
