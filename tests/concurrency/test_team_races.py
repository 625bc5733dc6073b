"""Users who change a team at the same instant, through two processes, over real HTTP."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import Pair
from tests.support.clients.client import Json
from tests.support.clients.teams import (
    ACCEPT_INVITATION,
    CREATE_TEAM,
    INVITE_TO_TEAM,
    LEAVE_TEAM,
    MY_INVITATIONS,
    MY_TEAMS,
    TeamClient,
    create_team_clients,
    team_document,
)
from tests.support.transport.simultaneous_requests import MAX_LUCKY_RUNS, send_simultaneously

Request = tuple[TeamClient, str, dict[str, Any]]


async def at_once(apps: Pair, requests: Sequence[Request]) -> list[Json]:
    """Run operations at the same instant, alternating between both processes."""
    urls = [app.url for app in apps]
    return await send_simultaneously(
        [
            (urls[number % 2], user.token, query, variables)
            for number, (user, query, variables) in enumerate(requests)
        ]
    )


def counted(outcomes: Sequence[Json]) -> Counter[str]:
    """Count the outcomes by type."""
    return Counter(outcome["__typename"] for outcome in outcomes)


async def team_of(members: Sequence[TeamClient]) -> str:
    """Create a team of these users."""
    first, *others = members
    team_id = await first.create_team()
    await first.add_members(team_id, *others)
    return team_id


async def test_many_members_who_leave_at_once_are_removed_and_the_others_stay(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members = await create_team_clients(two_apps[0], http, 12)
    team_id = await team_of(members)
    leaving, staying = members[:8], members[8:]
    outcomes = await at_once(two_apps, [(each, LEAVE_TEAM, {"team": team_id}) for each in leaving])
    assert counted(outcomes) == {"TeamLeft": 8}
    (team,) = await staying[0].execute(MY_TEAMS)
    assert [member["user"]["id"] for member in team["members"]] == [each.id for each in staying]


async def test_a_team_that_all_members_leave_at_once_is_deleted(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    *members, invited = await create_team_clients(two_apps[0], http, 13)
    team_id = await team_of(members)
    await members[0].execute(INVITE_TO_TEAM, team=team_id, email=invited.email)
    outcomes = await at_once(two_apps, [(each, LEAVE_TEAM, {"team": team_id}) for each in members])
    assert counted(outcomes) == {"TeamLeft": 12}
    assert team_document(two_apps[0].environment, team_id) is None
    assert await invited.execute(MY_INVITATIONS) == []


async def test_control_without_the_version_some_members_who_left_are_still_listed(
    two_apps: Pair, http: httpx.AsyncClient, log_dir: Path
) -> None:
    environment = two_apps[0].environment
    left_over = []
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                app_variant(environment, log_dir / name, without_guards="team-version")
            )
            for name in "ab"
        )
        for _ in range(MAX_LUCKY_RUNS):
            members = await create_team_clients(two_apps[0], http, 12)
            team_id = await team_of(members)
            requests = [(each, LEAVE_TEAM, {"team": team_id}) for each in members]
            assert counted(await at_once((first, second), requests)) == {"TeamLeft": 12}
            left_over.append(team_document(environment, team_id))
            if left_over[-1] is not None:
                break
    assert left_over[-1] is not None


async def test_of_two_invitations_to_the_last_seat_exactly_one_succeeds(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members = await create_team_clients(two_apps[0], http, 2)
    team_id = await team_of(members)
    for number in range(47):
        email = f"guest{number}@slotlock.test"
        assert (await members[0].execute(INVITE_TO_TEAM, team=team_id, email=email))[
            "id"
        ] == team_id
    requests: list[Request] = [
        (member, INVITE_TO_TEAM, {"team": team_id, "email": f"last-{member.email}"})
        for member in members
    ]
    assert counted(await at_once(two_apps, requests)) == {"Team": 1, "TeamFull": 1}
    document = team_document(two_apps[0].environment, team_id)
    assert document is not None
    assert len(document["members"]) + len(document["invitations"]) == 50


async def test_two_members_who_accept_the_last_seats_at_once_are_both_in(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    first, *guests = await create_team_clients(two_apps[0], http, 3)
    team_id = await first.create_team()
    fillers = [f"guest{number}@slotlock.test" for number in range(47)]
    for email in (*fillers, *(guest.email for guest in guests)):
        assert (await first.execute(INVITE_TO_TEAM, team=team_id, email=email))["id"] == team_id
    late: Request = (first, INVITE_TO_TEAM, {"team": team_id, "email": "late@slotlock.test"})
    requests: list[Request] = [(guest, ACCEPT_INVITATION, {"team": team_id}) for guest in guests]
    assert counted(await at_once(two_apps, [*requests, late])) == {"Team": 2, "TeamFull": 1}
    (team,) = await first.execute(MY_TEAMS)
    assert {each["user"]["id"] for each in team["members"]} == {first.id, *(g.id for g in guests)}


async def test_a_member_of_99_teams_who_joins_several_at_once_joins_exactly_one(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    busy, host = await create_team_clients(two_apps[0], http, 2)
    for number in range(99):
        await busy.create_team(f"Team {number}")
    teams = [await host.create_team() for _ in range(4)]
    for team_id in teams:
        await host.execute(INVITE_TO_TEAM, team=team_id, email=busy.email)
    requests: list[Request] = [(busy, ACCEPT_INVITATION, {"team": team_id}) for team_id in teams]
    requests += [(busy, CREATE_TEAM, {"name": "One more"})] * 4
    assert counted(await at_once(two_apps, requests)) == {"Team": 1, "TooManyTeams": 7}
    assert len(await busy.execute(MY_TEAMS)) == 100


async def test_an_address_with_99_invitations_gets_exactly_one_more_at_once(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    popular, *hosts = await create_team_clients(two_apps[0], http, 3)
    for number in range(99):
        team_id = await hosts[number % 2].create_team()
        await hosts[number % 2].execute(INVITE_TO_TEAM, team=team_id, email=popular.email)
    teams = [(host, await host.create_team()) for host in hosts * 2]
    requests: list[Request] = [
        (host, INVITE_TO_TEAM, {"team": team_id, "email": popular.email}) for host, team_id in teams
    ]
    assert counted(await at_once(two_apps, requests)) == {"Team": 1, "TooManyInvitations": 3}
    assert len(await popular.execute(MY_INVITATIONS)) == 100
    # One that is declined makes room for another.
    (first, *_) = await popular.execute(MY_INVITATIONS)
    decline = "mutation ($team: ID!) { declineTeamInvitation(teamId: $team) { __typename } }"
    await popular.execute(decline, team=first["teamId"])
    again = await at_once(two_apps, requests)
    assert counted(again) == {"Team": 2, "TooManyInvitations": 2}
