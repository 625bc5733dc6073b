"""Who may have a place, and for whom one may ask, is looked at when the turn comes."""

import pytest

from slotlock.auth import accounts
from slotlock.domain.users.user import Role
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.teams import LEAVE_TEAM
from tests.support.queue.tickets import QueueClient, QueueDeployment, line
from tests.support.stores.users import auth_for_database

__all__ = ["line"]

BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"


async def banned(line: QueueDeployment, who: BookingClient) -> None:
    outcome = await line.organizer(line.app()).execute(BAN, user=await who.fetch_user_id())
    assert outcome["__typename"] == "User", outcome


@pytest.mark.parametrize(("off", "outcome"), [("", "UserBanned"), ("validation", "Booked")])
async def test_who_was_banned_in_line_gets_no_place_but_from_a_worker_that_trusts_the_line(
    line: QueueDeployment, off: str, outcome: str
) -> None:
    app = line.app()
    slot_id, ada = await line.add_slot(app), line.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id)
    await banned(line, ada)
    line.worker(off)
    await line.wait_until_empty()
    # Who was banned cannot ask any more, so that this is read past the app.
    assert line.recorded_outcome(ticket["id"]) == outcome
    assert len(line.consistent_booking_ids(slot_id)) == (outcome == "Booked")


async def _leaves_the_team(
    line: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    (team,) = await whom.execute("{ myTeams { id } }")
    assert (await whom.execute(LEAVE_TEAM, team=team["id"]))["__typename"] == "TeamLeft"


async def _is_banned(line: QueueDeployment, asker: BookingClient, whom: BookingClient) -> None:
    await banned(line, whom)


async def _asker_is_banned(
    line: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    await banned(line, asker)


async def _organises_no_more(
    line: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    email = (await asker.execute("{ me { email } }"))["email"]
    async with auth_for_database(line.mongo_url) as auth:
        assert await accounts.set_role(auth, email, Role.MEMBER)


MATE, ORGANISER = False, True
HAPPENS = {
    "the team-mate leaves": (_leaves_the_team, MATE, "NotTeammate"),
    "the team-mate is banned": (_is_banned, MATE, "UserBanned"),
    "who asks for them is banned": (_asker_is_banned, MATE, "UserBanned"),
    "the organiser is none any more": (_organises_no_more, ORGANISER, "NotTeammate"),
    "who was to be seated is banned": (_is_banned, ORGANISER, "UserBanned"),
}


async def asked_for_ada(line: QueueDeployment, why: str, off: str = "") -> str:
    """What Ben or an organiser is told who asked for Ada before this happened."""
    happens, organised, _ = HAPPENS[why]
    app = line.app()
    slot_id, (ada, ben) = await line.add_slot(app), line.queue_clients(app, 2)
    await ben.create_team_with(ada)
    asker = QueueClient(line.http, app.url, line.user_tokens.organizer) if organised else ben
    ticket = await asker.enqueue(slot_id, userId=await ada.fetch_user_id())
    await happens(line, asker, ada)
    line.worker(off)
    await line.wait_until_empty()
    return line.recorded_outcome(ticket["id"])


@pytest.mark.parametrize("why", HAPPENS)
async def test_for_whom_one_may_ask_is_looked_at_when_the_turn_comes(
    line: QueueDeployment, why: str
) -> None:
    assert await asked_for_ada(line, why) == HAPPENS[why][2]


@pytest.mark.parametrize("why", HAPPENS)
async def test_control_a_worker_that_trusts_whom_one_might_ask_for_books_them(
    line: QueueDeployment, why: str
) -> None:
    assert await asked_for_ada(line, why, off="validation") == "Booked"
