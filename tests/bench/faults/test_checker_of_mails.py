"""The checker reports mails that are missing, not sent, or sent twice without a reason."""

import pytest

from tests.support.bench.fault_scene import ANN, BEN, Scene, booking_id, live

BOOKED = f"booked:{booking_id(1)}:0"


@pytest.fixture
def booked(scene: Scene) -> Scene:
    """Return a history with a booking whose mail was taken."""
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    scene.mail(BOOKED)
    return scene


def test_a_mail_for_each_change_is_no_violation(booked: Scene) -> None:
    booked.version()
    booked.cancelled(1, ANN)
    booked.entry(BOOKED)
    # It is one mail with the first one.
    booked.entry(f"cancelled:{booking_id(1)}:1", lead=BOOKED)
    assert booked.kinds() == set()


OVERTAKEN = "a later change has a mail of its own"


def test_a_later_change_explains_a_mail_that_was_not_sent_but_not_that_of_the_change(
    scene: Scene,
) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    scene.version()
    scene.cancelled(1, ANN)
    cancelled = f"cancelled:{booking_id(1)}:1"
    scene.entry(BOOKED, "suppressed", note=OVERTAKEN)
    scene.entry(cancelled)
    scene.mail(cancelled)
    assert scene.kinds() == set()
    scene.entry(cancelled, "suppressed", note=OVERTAKEN)
    assert "mail not sent" in scene.kinds()


@pytest.mark.parametrize(
    ("note", "kinds"),
    [
        ("the user is no longer a guardian, or banned", set()),
        (OVERTAKEN, {"mail not sent"}),
        ("the account no longer exists", {"mail not sent"}),
    ],
)
def test_a_former_guardian_gets_no_mail_and_others_get_that_of_the_last_change(
    booked: Scene, note: str, kinds: set[str]
) -> None:
    booked.entry(BOOKED)
    booked.entry(f"{BOOKED}:{BEN}", "suppressed", note=note, user=BEN, dependent=ANN)
    assert booked.kinds() == kinds


def test_a_change_without_an_entry_is_a_lost_mail(booked: Scene) -> None:
    assert booked.kinds() == {"mail lost", "mail without an entry"}


def test_a_slot_that_was_cancelled_demands_a_mail_to_each_user(booked: Scene) -> None:
    booked.version(live(1, ANN), status="cancelled")
    booked.entry(BOOKED)
    assert "mail lost" in booked.kinds()


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ("sent", "taken"),
        ("queued", "450 later"),
        ("sending", ""),
        ("failed", "550 no such user"),
        ("suppressed", "the account no longer exists"),
    ],
)
def test_a_mail_that_the_server_never_took_is_reported(scene: Scene, state: str, note: str) -> None:
    scene.version(live(1, BEN))
    scene.booked(1, BEN)
    scene.entry(BOOKED, state, note=note)
    scene.mail("of another", "554 rejected")
    assert scene.kinds() == {"mail not sent"}


def test_a_rejection_by_the_server_explains_a_mail_that_failed(scene: Scene) -> None:
    scene.version(live(1, BEN))
    scene.booked(1, BEN)
    scene.entry(BOOKED, "failed", note="554 rejected")
    scene.mail(BOOKED, "554 rejected")
    assert scene.kinds() == set()


FAULTS = {
    "mail server hangs": True,
    "worker killed": True,
    "mail leaves: all processes killed": True,
    "mail leaves: primary steps down": False,
    "mongod primary killed": False,
    "worker frozen": False,
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_mail_comes_twice_only_where_smtp_or_a_killed_process_explains_it(
    booked: Scene, kind: str
) -> None:
    taken_at = booked.now - 100
    times = (taken_at + 0.5, taken_at + 2, taken_at + 3)
    booked.history.write_fault(kind, "", *times)
    booked.mail(BOOKED)
    booked.entry(BOOKED)
    assert ("mail sent twice" in booked.kinds()) is not FAULTS[kind]


def test_a_mail_comes_again_after_a_server_that_died_before_its_response(scene: Scene) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    for response in (None, None, "250 taken"):
        scene.mail(BOOKED, response)
    scene.entry(BOOKED)
    assert scene.kinds() == set()
