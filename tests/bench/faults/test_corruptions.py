"""The checker reports each kind of corruption of a recorded history, wherever it is."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.faults.checker.check import check_directory
from bench.faults.checker.report import Report
from tests.support.bench.corruptions import families, messages, responses, versions
from tests.support.bench.recorded_history import RecordedHistory

SEED = 1
Corruption = Callable[[RecordedHistory, random.Random], None]

# Each corruption with a kind of violation that must be reported, and perhaps others.
CORRUPTIONS: dict[Corruption, str] = {
    versions.revive_a_cancelled_booking: "live again",
    versions.drop_a_waiting_list_entry: "waiting list entry vanished",
    versions.swap_the_waiting_list: "waiting list out of order",
    versions.forget_an_ended_booking: "booking vanished",
    versions.forget_a_booking: "lost booking",
    versions.book_twice: "user twice in a slot",
    versions.overbook: "overbooked",
    versions.miscount: "wrong count",
    versions.exceed_a_limit: "limit exceeded",
    versions.expire_a_confirmed_booking: "confirmed booking expired",
    versions.decide_in_the_future: "decided in the future",
    versions.drop_a_version: "version not recorded",
    versions.drop_the_last_version: "version not recorded",
    versions.drop_a_document: "version without a document",
    versions.write_a_version_twice: "version written twice",
    versions.let_a_version_fall: "version fell",
    versions.drop_a_slot: "lost slot",
    versions.create_a_slot_twice: "second effect",
    responses.refuse_without_a_reason: "unexplained refusal",
    responses.refuse_what_is_written: "second effect",
    responses.refuse_a_cancellation_that_is_written: "refused, but written",
    responses.lose_a_cancellation: "lost cancellation",
    responses.miss_a_live_booking: "unexplained refusal",
    responses.confirm_an_ended_booking: "lost change",
    responses.miss_a_waiting_user: "unexplained refusal",
    responses.show_another_booking: "unexplained refusal",
    responses.acknowledge_to_another_user: "booking of another user",
    responses.acknowledge_before_the_write: "response before its write",
    responses.acknowledge_an_older_booking: "response with an older booking",
    responses.answer_a_key_twice: "key with two outcomes",
    responses.fail_every_request: "unexplained error",
    responses.fail_a_request: "unexplained error",
    responses.be_unavailable_without_a_fault: "unavailable without a fault",
    responses.sign_a_user_out: "signed out",
    responses.misread_a_slot: "read wrongly",
    responses.read_an_old_version: "read wrongly",
    families.forget_that_a_guardian_made_it: "made as somebody else",
    families.book_for_a_lost_child: "booked by a former guardian",
    messages.lose_a_booked_ticket: "refused, but written",
    messages.report_both_outcomes_of_a_ticket: "wrong ticket",
    messages.lose_a_ticket_without_a_loss: "lost without a loss",
    messages.never_answer_a_ticket: "ticket without an outcome",
    messages.write_without_a_lock: "written without a lock",
    messages.work_without_a_lock: "worked without a lock",
    messages.drop_the_fences_of_a_lock: "grant not recorded",
    messages.let_a_fence_fall: "fence fell",
    messages.leave_a_subscriber_stale: "stale subscriber",
    messages.let_availability_go_back: "availability went back",
    messages.misinform_a_subscriber: "wrong message to a subscriber",
    messages.notify_a_subscriber_early: "wrong message to a subscriber",
    messages.conceal_a_promotion: "stale subscriber",
    messages.invent_an_expiry: "wrong message to a subscriber",
    messages.end_with_a_stale_subscriber: "stale subscriber",
}


def check(history: RecordedHistory, directory: Path) -> Report:
    """Return what the checker finds in a history."""
    history.write(directory)
    return check_directory(directory)


def test_the_recorded_history_has_no_violation(tmp_path: Path) -> None:
    assert check(RecordedHistory.load(), tmp_path).violations == []


def test_the_recorded_history_with_guardians_has_no_violation(tmp_path: Path) -> None:
    history = RecordedHistory.load()
    assert families.add_guardians(history)
    report = check(history, tmp_path)
    assert report.violations == []
    assert report.counts["requests of guardians"]


@pytest.mark.parametrize(
    ("corrupt", "kind"), [pytest.param(*each, id=each[0].__name__) for each in CORRUPTIONS.items()]
)
def test_a_corruption_is_reported(corrupt: Corruption, kind: str, tmp_path: Path) -> None:
    history = RecordedHistory.load()
    corrupt(history, random.Random(SEED))
    assert kind in check(history, tmp_path).kinds()


def test_a_full_slot_is_not_shown_as_another_refusal(tmp_path: Path) -> None:
    history = RecordedHistory.load()
    responses.show_full_slots_as_others(history, random.Random(SEED))
    kinds = check(history, tmp_path).kinds()
    assert kinds["unexplained refusal"] == len(responses.FULL_SHOWN_AS)
