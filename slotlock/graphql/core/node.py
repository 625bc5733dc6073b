"""The interface of everything that has an id of its own."""

import strawberry
from strawberry import field


@strawberry.interface(description="An object that `node` returns again for its id.")
class Node:
    id: strawberry.ID = field(description="An opaque id, unique among all types.")
