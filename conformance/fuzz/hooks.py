"""The hooks that schemathesis loads: custom scalars, access tokens and the check of responses.

schemathesis is another process: FUZZ_PLAN names the file with its input, FUZZ_REPORT that of its
results.
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
# schemathesis reuses ids from responses, and an admin can end the sessions of any user.
CALLER_ID, OTHER_USER_ID = PLAN["user_ids"]
# These operations end the session of their own user or of another user of this list.
SIGN_OUT_OPERATIONS = frozenset(PLAN["sign_out_operations"])
SPARE_TOKENS = cycle(PLAN["spare_tokens"])
# Generated cursors are invalid, so that every second list is requested from its beginning.
CURSOR = re.compile(r'\bafter: "(?:[^"\\]|\\.)*"')
SENDS_CURSOR = cycle((True, False))
MAX_EXAMPLES_PER_FIELD = 3

register()


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    """Add an access token, remove the cursor of every second list, and never name the caller."""
    if isinstance(case.body, str):
        case.body = case.body.replace(CALLER_ID, OTHER_USER_ID)
        if not next(SENDS_CURSOR):
            case.body = CURSOR.sub("after: null", case.body)
    if TOKEN is not None:
        token = next(SPARE_TOKENS) if case.operation.label in SIGN_OUT_OPERATIONS else TOKEN
        case.headers["Authorization"] = f"Bearer {token}"


@schemathesis.check
class NoServerError:
    """Every response is GraphQL without a server error, and no session ends unexpectedly."""

    def __init__(self) -> None:
        self._sent: Counter[str] = Counter()
        self._executed: Counter[str] = Counter()
        self._failures: dict[str, dict[str, str]] = {}

    def after_response(self, _ctx: CheckContext, response: Response, case: Case[Any]) -> None:
        """Check one response; raises AssertionError."""
        label = case.operation.label
        self._sent[label] += 1
        stays_signed_in = TOKEN is not None and label not in SIGN_OUT_OPERATIONS
        judgment = judge(response.status_code, response.content, stays_signed_in=stays_signed_in)
        self._executed[label] += judgment.executed
        if judgment.problem is not None:
            examples = self._failures.setdefault(label, {})
            if len(examples) < MAX_EXAMPLES_PER_FIELD:
                examples.setdefault(judgment.problem, str(case.body))
            raise AssertionError(judgment.problem)

    def after_run(self, _ctx: CheckContext) -> None:
        """Write the report."""
        report = {"sent": self._sent, "executed": self._executed, "failures": self._failures}
        Path(os.environ["FUZZ_REPORT"]).write_text(json.dumps(report))
