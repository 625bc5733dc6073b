"""Who sees the invitations to an address, and who may accept them."""

import pytest

from slotlock.domain.teams.team_outcomes import NotInvited, TeamSaved
from slotlock.domain.users.user import Role, User
from slotlock.services import teams
from tests.support.model.service_pair import ServicePair
from tests.support.stores.users import new_email


@pytest.mark.parametrize("is_required", [True, False])
def test_an_invitation_waits_until_its_address_is_verified_where_the_site_requires_it(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_required: bool
) -> None:
    services, run = pair.services[0], pair.runner.run
    monkeypatch.setattr(services, "require_verified_email", is_required)
    email, now = new_email(), pair.clock()
    squatter = run(
        services.users.insert("Eve", email, Role.MEMBER, "hash", now, self_registered=True)
    )
    created = run(teams.create(services, "Relay", pair.callers[0].user_id))
    assert isinstance(squatter, User)
    assert isinstance(created, TeamSaved)
    team_id = created.team.id
    assert isinstance(
        run(teams.invite(services, team_id, email, pair.callers[0].user_id)), TeamSaved
    )
    seen = run(teams.list_invitations(services, squatter.id))
    accepted = run(teams.accept(services, team_id, squatter.id))
    assert (len(seen), isinstance(accepted, NotInvited)) == (not is_required, is_required)
