"""Who may have a place, and for whom one may ask, is looked at when the turn comes."""

import pytest

from slotlock.auth import accounts
from slotlock.domain.people import Role
from tests.support.desk import Person
from tests.support.people import auth_on
from tests.support.teams import LEAVE
from tests.support.tickets import Customer, QueueScene, line

__all__ = ["line"]

BAN = "mutation($user: ID!) { banPerson(userId: $user) { __typename } }"


async def banned(line: QueueScene, who: Person) -> None:
    outcome = await line.organiser(line.app()).ask(BAN, user=await who.id())
    assert outcome["__typename"] == "User", outcome


@pytest.mark.parametrize(("off", "outcome"), [("", "PersonBanned"), ("validation", "Booked")])
async def test_who_was_banned_in_line_gets_no_place_but_from_a_worker_that_trusts_the_line(
    line: QueueScene, off: str, outcome: str
) -> None:
    app = line.app()
    slot_id, ada = await line.slot(app), line.customer(app, 0)
    ticket = await ada.stand(slot_id)
    await banned(line, ada)
    line.worker(off)
    await line.until_served()
    # Who was banned cannot ask any more, so that this is read past the app.
    assert line.kept(ticket["id"]) == outcome
    assert len(line.live(slot_id)) == (outcome == "Booked")


async def _leaves_the_team(line: QueueScene, asker: Person, whom: Person) -> None:
    (team,) = await whom.ask("{ myTeams { id } }")
    assert (await whom.ask(LEAVE, team=team["id"]))["__typename"] == "TeamLeft"


async def _is_banned(line: QueueScene, asker: Person, whom: Person) -> None:
    await banned(line, whom)


async def _asker_is_banned(line: QueueScene, asker: Person, whom: Person) -> None:
    await banned(line, asker)


async def _organises_no_more(line: QueueScene, asker: Person, whom: Person) -> None:
    email = (await asker.ask("{ me { email } }"))["email"]
    async with auth_on(line.mongo_url) as auth:
        assert await accounts.set_role(auth, email, Role.MEMBER)


MATE, ORGANISER = False, True
HAPPENS = {
    "the team-mate leaves": (_leaves_the_team, MATE, "NotTeammate"),
    "the team-mate is banned": (_is_banned, MATE, "PersonBanned"),
    "who asks for them is banned": (_asker_is_banned, MATE, "PersonBanned"),
    "the organiser is none any more": (_organises_no_more, ORGANISER, "NotTeammate"),
    "who was to be seated is banned": (_is_banned, ORGANISER, "PersonBanned"),
}


async def asked_for_ada(line: QueueScene, why: str, off: str = "") -> str:
    """What Ben or an organiser is told who asked for Ada before this happened."""
    happens, organised, _ = HAPPENS[why]
    app = line.app()
    slot_id, (ada, ben) = await line.slot(app), line.customers(app, 2)
    await ben.team_up(ada)
    asker = Customer(line.http, app.url, line.crowd.organiser) if organised else ben
    ticket = await asker.stand(slot_id, userId=await ada.id())
    await happens(line, asker, ada)
    line.worker(off)
    await line.until_served()
    return line.kept(ticket["id"])


@pytest.mark.parametrize("why", HAPPENS)
async def test_for_whom_one_may_ask_is_looked_at_when_the_turn_comes(
    line: QueueScene, why: str
) -> None:
    assert await asked_for_ada(line, why) == HAPPENS[why][2]


@pytest.mark.parametrize("why", HAPPENS)
async def test_control_a_worker_that_trusts_whom_one_might_ask_for_books_them(
    line: QueueScene, why: str
) -> None:
    assert await asked_for_ada(line, why, off="validation") == "Booked"
