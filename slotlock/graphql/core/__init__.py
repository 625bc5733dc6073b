"""What the types, mutations and queries of all capabilities use.

Strawberry makes each type a dataclass. For 300 types, Python would compile a comparison, a
representation and a docstring with the signature, which nobody uses: a tenth of each start.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar, cast

from strawberry.types import object_type

Decorated = TypeVar("Decorated", bound=type)


def _dataclass(*, kw_only: bool) -> Callable[[Decorated], Decorated]:
    def wrap(decorated: Decorated) -> Decorated:
        options = {"kw_only": kw_only}
        if decorated.__module__.startswith("slotlock."):
            decorated.__doc__ = decorated.__doc__ or decorated.__name__
            options |= {"init": "__init__" not in vars(decorated), "repr": False, "eq": False}
        return cast("Decorated", dataclasses.dataclass(**options)(decorated))

    return wrap


_lean_dataclasses = ModuleType(dataclasses.__name__)
vars(_lean_dataclasses).update(vars(dataclasses), dataclass=_dataclass)
object_type.dataclasses = _lean_dataclasses  # type: ignore[attr-defined]
