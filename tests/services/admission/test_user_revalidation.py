"""Who may have a place, and for whom one may ask, is looked at when the turn comes."""

import pytest

from slotlock.auth import accounts
from slotlock.domain.users.user import Role
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.teams import LEAVE_TEAM
from tests.support.queue.deployment import QueueClient, QueueDeployment, queue_deployment
from tests.support.stores.users import auth_for_database

__all__ = ["queue_deployment"]

BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"


async def banned(queue_deployment: QueueDeployment, who: BookingClient) -> None:
    outcome = await queue_deployment.organizer(queue_deployment.app()).execute(
        BAN, user=await who.fetch_user_id()
    )
    assert outcome["__typename"] == "User", outcome


@pytest.mark.parametrize(("off", "outcome"), [("", "UserBanned"), ("revalidation", "Booked")])
async def test_who_was_banned_in_line_gets_no_place_but_from_a_worker_that_trusts_the_line(
    queue_deployment: QueueDeployment, off: str, outcome: str
) -> None:
    app = queue_deployment.app()
    slot_id, ada = await queue_deployment.add_slot(app), queue_deployment.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id)
    await banned(queue_deployment, ada)
    queue_deployment.worker(off)
    await queue_deployment.wait_until_empty()
    # Who was banned cannot ask any more, so that this is read past the app.
    assert queue_deployment.recorded_outcome(ticket["id"]) == outcome
    assert len(queue_deployment.consistent_booking_ids(slot_id)) == (outcome == "Booked")


async def _leaves_the_team(
    queue_deployment: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    (team,) = await whom.execute("{ myTeams { id } }")
    assert (await whom.execute(LEAVE_TEAM, team=team["id"]))["__typename"] == "TeamLeft"


async def _is_banned(
    queue_deployment: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    await banned(queue_deployment, whom)


async def _asker_is_banned(
    queue_deployment: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    await banned(queue_deployment, asker)


async def _organises_no_more(
    queue_deployment: QueueDeployment, asker: BookingClient, whom: BookingClient
) -> None:
    email = (await asker.execute("{ me { email } }"))["email"]
    async with auth_for_database(queue_deployment.mongo_url) as auth:
        assert await accounts.set_role(auth, email, Role.MEMBER)


MATE, ORGANISER = False, True
HAPPENS = {
    "the team-mate leaves": (_leaves_the_team, MATE, "NotTeammate"),
    "the team-mate is banned": (_is_banned, MATE, "UserBanned"),
    "who asks for them is banned": (_asker_is_banned, MATE, "UserBanned"),
    "the organiser is none any more": (_organises_no_more, ORGANISER, "NotTeammate"),
    "who was to be seated is banned": (_is_banned, ORGANISER, "UserBanned"),
}


async def asked_for_ada(queue_deployment: QueueDeployment, why: str, off: str = "") -> str:
    """What Ben or an organiser is told who asked for Ada before this happened."""
    happens, organised, _ = HAPPENS[why]
    app = queue_deployment.app()
    slot_id, (ada, ben) = (
        await queue_deployment.add_slot(app),
        queue_deployment.queue_clients(app, 2),
    )
    await ben.create_team_with(ada)
    asker = (
        QueueClient(queue_deployment.http, app.url, queue_deployment.user_tokens.organizer)
        if organised
        else ben
    )
    ticket = await asker.enqueue(slot_id, userId=await ada.fetch_user_id())
    await happens(queue_deployment, asker, ada)
    queue_deployment.worker(off)
    await queue_deployment.wait_until_empty()
    return queue_deployment.recorded_outcome(ticket["id"])


@pytest.mark.parametrize("why", HAPPENS)
async def test_for_whom_one_may_ask_is_looked_at_when_the_turn_comes(
    queue_deployment: QueueDeployment, why: str
) -> None:
    assert await asked_for_ada(queue_deployment, why) == HAPPENS[why][2]


@pytest.mark.parametrize("why", HAPPENS)
async def test_control_a_worker_that_trusts_whom_one_might_ask_for_books_them(
    queue_deployment: QueueDeployment, why: str
) -> None:
    assert await asked_for_ada(queue_deployment, why, off="revalidation") == "Booked"
