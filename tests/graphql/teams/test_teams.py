"""Users form teams by invitation. Only members can see a team."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.teams import (
    ACCEPT_INVITATION,
    CREATE_TEAM,
    DECLINE_INVITATION,
    INVITE_TO_TEAM,
    LEAVE_TEAM,
    MY_INVITATIONS,
    MY_TEAMS,
    TEAM_BY_ID,
    WITHDRAW_INVITATION,
    TeamClient,
    create_team_clients,
    team_document,
)
from tests.support.stores.users import (
    create_user_tokens,
    new_email,
)

UPDATE_USER = "mutation($input: UpdateUserInput!) { updateUser(input: $input) { __typename } }"
ERASE_USER = "mutation($user: ID!) { eraseUser(userId: $user) { __typename } }"
UNKNOWN_TEAM = "team_" + "0" * 24


@pytest.fixture
async def ada(app: AppProcess, http: httpx.AsyncClient) -> TeamClient:
    """Return a user who creates teams."""
    return (await create_team_clients(app, http, 1))[0]


@pytest.fixture
async def ben(app: AppProcess, http: httpx.AsyncClient) -> TeamClient:
    """Return a user who receives invitations."""
    return (await create_team_clients(app, http, 1))[0]


@pytest.fixture
async def stranger(app: AppProcess, http: httpx.AsyncClient) -> TeamClient:
    """Return a user who is in no team of the others."""
    return (await create_team_clients(app, http, 1))[0]


def members_and_invitations(team: Json) -> tuple[list[str], list[str]]:
    """Return the ids of the members and the invited addresses."""
    members = [member["user"]["id"] for member in team["members"]]
    return members, [invitation["email"] for invitation in team["invitations"]]


async def test_a_user_creates_a_team_and_another_joins(ada: TeamClient, ben: TeamClient) -> None:
    team = await ada.execute(CREATE_TEAM, name="  Läufer 🏃‍♀️ ")
    assert (team["name"], members_and_invitations(team)) == ("Läufer 🏃‍♀️", ([ada.id], []))
    invited = await ada.execute(INVITE_TO_TEAM, team=team["id"], email=f" {ben.email.upper()} ")
    assert members_and_invitations(invited) == ([ada.id], [ben.email])
    (invitation,) = await ben.execute(MY_INVITATIONS)
    assert (invitation["teamId"], invitation["teamName"]) == (team["id"], "Läufer 🏃‍♀️")
    assert invitation["invitedBy"] == {"id": ada.id, "name": "Somebody", "email": None}
    accepted = await ben.execute(ACCEPT_INVITATION, team=team["id"])
    assert members_and_invitations(accepted) == ([ada.id, ben.id], [])
    assert accepted["members"][0]["user"]["email"] is None
    assert await ben.execute(MY_INVITATIONS) == []
    for member in (ada, ben):
        (team_of_member,) = await member.execute(MY_TEAMS)
        assert [entry["user"]["id"] for entry in team_of_member["members"]] == [ada.id, ben.id]
        assert await member.execute(TEAM_BY_ID, id=team["id"]) == {
            "id": team["id"],
            "name": team["name"],
        }


async def test_an_invitation_does_not_reveal_whether_an_account_exists(
    ada: TeamClient, ben: TeamClient
) -> None:
    team_id = await ada.create_team()
    unknown = f"un{ben.email}"
    with_account = await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
    without = await ada.execute(INVITE_TO_TEAM, team=team_id, email=unknown)
    assert with_account["__typename"] == without["__typename"] == "Team"
    known, other = without["invitations"]
    assert (known["email"], other["email"]) == (ben.email, unknown)
    assert known.keys() == other.keys() == {"email", "invitedAt"}


async def test_a_member_or_an_invalid_address_is_refused(ada: TeamClient, ben: TeamClient) -> None:
    team_id = await ada.create_team()
    await ada.add_members(team_id, ben)
    for email, message in (
        (ada.email, "You are already a member of this team."),
        (ben.email.upper(), "This user is already a member of the team."),
    ):
        outcome = await ada.execute(INVITE_TO_TEAM, team=team_id, email=email)
        assert (outcome["code"], outcome["message"]) == ("ALREADY_MEMBER", message)
    for invalid in ("", "b en", "a@b@c", "x" * 300 + "@slotlock.test", "a\u0000@slotlock.test"):
        outcome = await ada.execute(INVITE_TO_TEAM, team=team_id, email=invalid)
        assert (outcome["code"], outcome["fields"]) == ("INVALID_INPUT", [{"field": "email"}])


async def test_a_stranger_cannot_distinguish_a_team_from_an_unknown_id(
    ada: TeamClient, ben: TeamClient, stranger: TeamClient
) -> None:
    team_id = await ada.create_team()
    await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
    for id_ in (team_id, UNKNOWN_TEAM):
        assert await stranger.execute(TEAM_BY_ID, id=id_) is None
        for query, email in (
            (INVITE_TO_TEAM, stranger.email),
            (WITHDRAW_INVITATION, ben.email),
            (LEAVE_TEAM, None),
        ):
            variables = {"team": id_} | ({"email": email} if email else {})
            assert (await stranger.execute(query, **variables))["code"] == "TEAM_NOT_FOUND"
        for query in (ACCEPT_INVITATION, DECLINE_INVITATION):
            assert (await stranger.execute(query, team=id_))["code"] == "NOT_INVITED"
    assert await stranger.execute(MY_TEAMS) == await stranger.execute(MY_INVITATIONS) == []
    assert await ben.execute(TEAM_BY_ID, id=team_id) is None  # an invitation is not a membership
    assert await ben.execute(MY_TEAMS) == []
    assert members_and_invitations(
        await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
    ) == ([ada.id], [ben.email])


async def test_organizers_cannot_see_teams_of_others(
    ada: TeamClient, app: AppProcess, http: httpx.AsyncClient
) -> None:
    team_id = await ada.create_team()
    organizer = GraphQLTestClient(http, app.url, create_user_tokens(app.environment, 0).organizer)
    assert await organizer.execute(TEAM_BY_ID, id=team_id) is None


@pytest.mark.parametrize(
    "malformed",
    ["", "team_", "slot_" + "0" * 24, "team_" + "0" * 23, "team_" + "G" * 24, "0" * 24,
     UNKNOWN_TEAM + "\n", "team_" + "\uff10" * 24, "x" * 5_000],
)  # fmt: skip
async def test_a_malformed_or_unknown_team_id_is_not_found(ada: TeamClient, malformed: str) -> None:
    assert await ada.execute(TEAM_BY_ID, id=malformed) is None
    for query, code in (
        (ACCEPT_INVITATION, "NOT_INVITED"),
        (DECLINE_INVITATION, "NOT_INVITED"),
        (LEAVE_TEAM, "TEAM_NOT_FOUND"),
    ):
        assert (await ada.execute(query, team=malformed))["code"] == code
    for query in (INVITE_TO_TEAM, WITHDRAW_INVITATION):
        outcome = await ada.execute(query, team=malformed, email=ada.email)
        assert outcome["code"] == "TEAM_NOT_FOUND"


async def test_declined_and_withdrawn_invitations_end(ada: TeamClient, ben: TeamClient) -> None:
    team_id = await ada.create_team()
    operations: list[tuple[TeamClient, str, dict[str, Any]]] = [
        (ben, DECLINE_INVITATION, {"team": team_id}),
        (ada, WITHDRAW_INVITATION, {"team": team_id, "email": ben.email.upper()}),
    ]
    for user, query, variables in operations:
        await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
        assert (await user.execute(query, **variables))["__typename"] in (
            "InvitationDeclined",
            "Team",
        )
        assert await ben.execute(MY_INVITATIONS) == []
        assert (await ben.execute(ACCEPT_INVITATION, team=team_id))["code"] == "NOT_INVITED"
        assert (await user.execute(query, **variables))["code"] == "NOT_INVITED"


async def test_a_former_member_cannot_see_the_team_and_the_last_exit_deletes_it(
    ada: TeamClient, ben: TeamClient, stranger: TeamClient
) -> None:
    team_id = await ada.create_team()
    await ada.add_members(team_id, ben)
    assert (await ada.execute(LEAVE_TEAM, team=team_id))["__typename"] == "TeamLeft"
    assert await ada.execute(TEAM_BY_ID, id=team_id) is None
    assert (await ada.execute(LEAVE_TEAM, team=team_id))["code"] == "TEAM_NOT_FOUND"
    assert members_and_invitations(
        await ben.execute(INVITE_TO_TEAM, team=team_id, email=stranger.email)
    )[0] == [ben.id]
    assert (await ben.execute(LEAVE_TEAM, team=team_id))["__typename"] == "TeamLeft"
    assert await stranger.execute(MY_INVITATIONS) == []
    assert (await stranger.execute(ACCEPT_INVITATION, team=team_id))["code"] == "NOT_INVITED"


async def test_leaving_a_team_does_not_change_bookings(
    ada: TeamClient, app: AppProcess, http: httpx.AsyncClient
) -> None:
    organizer = GraphQLTestClient(http, app.url, create_user_tokens(app.environment, 0).organizer)
    slot = await organizer.create_slot()
    team_id = await ada.create_team()
    booking = (await ada.client.book(slot["id"]))["booking"]
    await ada.execute(LEAVE_TEAM, team=team_id)
    seen_slot = await ada.execute(
        "query ($id: ID!) { slot(id: $id) { myBooking { id } } }", id=slot["id"]
    )
    assert seen_slot == {"myBooking": {"id": booking["id"]}}


async def change_address(admin: BookingClient, user: TeamClient) -> str:
    """Give a user another address and return it."""
    email = new_email()
    changed = await admin.execute(UPDATE_USER, input={"userId": user.id, "email": email})
    assert changed == {"__typename": "UserUpdated"}
    return email


async def test_an_invitation_follows_a_user_to_another_address_and_frees_its_seat(
    ada: TeamClient, ben: TeamClient, admin: BookingClient
) -> None:
    team_id = await ada.create_team()
    await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
    await change_address(admin, ben)
    await change_address(admin, ben)
    (invitation,) = await ben.execute(MY_INVITATIONS)
    assert invitation["teamId"] == team_id
    # The team does not learn the new address.
    (team,) = await ada.execute("{ myTeams { members { user { id } } invitations { email } } }")
    assert members_and_invitations(team) == ([ada.id], [ben.email])
    await ben.execute(ACCEPT_INVITATION, team=team_id)
    assert await ben.execute(MY_INVITATIONS) == []
    (team,) = await ada.execute("{ myTeams { members { user { id } } invitations { email } } }")
    assert members_and_invitations(team) == ([ada.id, ben.id], [])


async def test_no_address_of_an_erased_user_stays_in_an_invitation(
    app: AppProcess, ada: TeamClient, ben: TeamClient, admin: BookingClient
) -> None:
    team_id = await ada.create_team()
    await ada.execute(INVITE_TO_TEAM, team=team_id, email=ben.email)
    later = await change_address(admin, ben)
    other_team_id = await ada.create_team()
    await ada.execute(INVITE_TO_TEAM, team=other_team_id, email=later)
    await change_address(admin, ben)
    erased = await admin.execute(ERASE_USER, user=ben.id)
    assert erased["__typename"] == "UserErased"
    for each in (team_id, other_team_id):
        document = team_document(app.environment, each)
        assert document is not None
        assert document["invitations"] == []
