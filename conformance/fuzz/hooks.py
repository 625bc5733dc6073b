"""What schemathesis loads: values of our scalars, who asks, and the check of every answer.

It runs in a process of its own; what it is to know comes in the file that FUZZ_PLAN names, and what
it saw goes into the one that FUZZ_REPORT names.
"""

import json
import os
import re
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response

from conformance.fuzz.judgment import judge
from conformance.fuzz.scalars import register

PLAN = json.loads(Path(os.environ["FUZZ_PLAN"]).read_text())
TOKEN: str | None = PLAN["token"]
# Whoever sends these is signed out by them, or by the next who sends them.
SIGN_OUT_OPERATIONS = frozenset(PLAN["ending"])
SPARE_TOKENS = cycle(PLAN["spare"])
# What it makes up is no cursor, so that every second page is asked for from its beginning.
CURSOR = re.compile(r'\bafter: "(?:[^"\\]|\\.)*"')
KEEP_CURSOR = cycle((True, False))
MAX_EXAMPLES_PER_FIELD = 3

register()


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    """Sign the request, if anybody is signed in; let half of the lists begin at their beginning."""
    if isinstance(case.body, str) and not next(KEEP_CURSOR):
        case.body = CURSOR.sub("after: null", case.body)
    if TOKEN is not None:
        token = next(SPARE_TOKENS) if case.operation.label in SIGN_OUT_OPERATIONS else TOKEN
        case.headers["Authorization"] = f"Bearer {token}"


@schemathesis.check
class NoServerError:
    """No 5xx, no error that is ours, nothing but GraphQL; and who signed in stays so."""

    def __init__(self) -> None:
        self._sent: Counter[str] = Counter()
        self._executed: Counter[str] = Counter()
        self._failures: dict[str, dict[str, str]] = {}

    def after_response(self, _ctx: CheckContext, response: Response, case: Case[Any]) -> None:
        """Judge one answer. Errors: AssertionError."""
        label = case.operation.label
        self._sent[label] += 1
        stays = TOKEN is not None and label not in SIGN_OUT_OPERATIONS
        found = judge(response.status_code, response.content, stays_signed_in=stays)
        self._executed[label] += found.executed
        if found.problem is not None:
            told = self._failures.setdefault(label, {})
            if len(told) < MAX_EXAMPLES_PER_FIELD:
                told.setdefault(found.problem, str(case.body))
            raise AssertionError(found.problem)

    def after_run(self, _ctx: CheckContext) -> None:
        """Write down what was seen."""
        report = {"sent": self._sent, "executed": self._executed, "failures": self._failures}
        Path(os.environ["FUZZ_REPORT"]).write_text(json.dumps(report))
