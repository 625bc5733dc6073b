"""The union of each mutation lists exactly the outcomes of its use case."""

from collections.abc import Callable
from types import UnionType
from typing import get_args, get_type_hints

import pytest
from graphql import GraphQLUnionType

from slotlock.auth import accounts, invitations, sessions, user_admin
from slotlock.auth.administration import account_admin
from slotlock.domain.admission import tickets
from slotlock.domain.booking import outcomes
from slotlock.domain.campaigns import campaign
from slotlock.domain.resources import resource
from slotlock.domain.slots.outcomes import DeleteSlotOutcome, EditSlotOutcome
from slotlock.domain.teams.outcomes import (
    AcceptInvitationOutcome,
    CreateTeamOutcome,
    DeclineInvitationOutcome,
    InviteToTeamOutcome,
    LeaveTeamOutcome,
    WithdrawInvitationOutcome,
)
from slotlock.graphql.booking.refusals.attendance import InvalidCheckInCode
from slotlock.graphql.schema.schema import executable_schema
from slotlock.services import resources
from slotlock.services.campaigns import campaigns, copies
from slotlock.services.slots import editing, series, series_dates


def returned_by(use_case: Callable[..., object]) -> UnionType:
    """Return the union of outcomes in the signature of a use case."""
    union: UnionType = get_type_hints(use_case)["return"]
    return union


OUTCOMES = {
    "BookSlotResult": outcomes.BookOutcome,
    "BookSlotsResult": outcomes.BookAllOutcome,
    "BookSeriesResult": outcomes.BookSeriesOutcome,
    "ConfirmBookingResult": outcomes.ConfirmOutcome,
    "ExtendHoldResult": outcomes.ExtendOutcome,
    "CancelBookingResult": outcomes.CancelOutcome,
    "MoveBookingResult": outcomes.MoveOutcome,
    "JoinWaitlistResult": outcomes.JoinWaitlistOutcome,
    "LeaveWaitlistResult": outcomes.LeaveWaitlistOutcome,
    "RequestBookingResult": tickets.RequestBookingOutcome,
    "CancelTicketResult": tickets.CancelTicketOutcome,
    "CheckInResult": outcomes.CheckInOutcome | InvalidCheckInCode,
    "UndoCheckInResult": outcomes.UndoCheckInOutcome,
    "MarkNoShowResult": outcomes.MarkNoShowOutcome,
    "UndoNoShowResult": outcomes.UndoNoShowOutcome,
    "CreateSlotResult": editing.CreateSlotOutcome,
    "UpdateSlotResult": EditSlotOutcome,
    "DeleteSlotResult": DeleteSlotOutcome,
    "CreateSlotSeriesResult": series.CreateSeriesOutcome,
    "AddSeriesDatesResult": series_dates.AddDatesOutcome,
    "RemoveSeriesDatesResult": series_dates.RemoveDatesOutcome,
    "CreateResourceResult": resource.CreateResourceOutcome,
    "UpdateResourceResult": resource.UpdateResourceOutcome,
    "DeleteResourceResult": resource.DeleteResourceOutcome,
    "ImportResourcesResult": returned_by(resources.import_names),
    "CreateCampaignResult": returned_by(campaigns.create),
    "CopyCampaignResult": copies.CopyCampaignOutcome,
    "UpdateCampaignResult": campaign.CampaignOutcome,
    "DeleteCampaignResult": campaign.DeleteCampaignOutcome,
    "CreateTeamResult": CreateTeamOutcome,
    "InviteToTeamResult": InviteToTeamOutcome,
    "AcceptTeamInvitationResult": AcceptInvitationOutcome,
    "DeclineTeamInvitationResult": DeclineInvitationOutcome,
    "WithdrawTeamInvitationResult": WithdrawInvitationOutcome,
    "LeaveTeamResult": LeaveTeamOutcome,
    "CreateUserResult": returned_by(account_admin.create_invited_user),
    "UpdateUserResult": returned_by(account_admin.update_user),
    "SetUserRoleResult": returned_by(account_admin.set_role),
    "InviteUserResult": returned_by(account_admin.invite),
    "EndUserSessionsResult": returned_by(account_admin.end_sessions),
    "EraseUserResult": returned_by(account_admin.erase_account),
    "SetGroupsResult": returned_by(user_admin.set_groups),
    "BanUserResult": returned_by(user_admin.ban),
    "UnbanUserResult": returned_by(user_admin.unban),
    "RegisterResult": returned_by(accounts.register),
    "LoginResult": returned_by(accounts.login),
    "SetPasswordResult": returned_by(invitations.set_password),
    "RefreshResult": returned_by(sessions.refresh_session),
    "ChangePasswordResult": returned_by(accounts.change_password),
}
# `endSession` has no outcome in `auth`: ending a session twice is no error there. A link to an
# export needs no use case: its mutation only finds what to export.
WITHOUT_OUTCOME = {"CreateExportLinkResult", "EndSessionResult"}
SHOWN_AS = {
    "Erasure": "UserErased",
    "SessionsEnded": "UserSessionsEnded",
    "ResourceSaved": "Resource",
    "SlotSaved": "Slot",
    "SeriesCreated": "SlotSeriesCreated",
    "DatesAdded": "SeriesDatesAdded",
    "DatesRemoved": "SeriesDatesRemoved",
    "CampaignSaved": "Campaign",
    "CampaignCopyPreview": "CampaignCopy",
    "TeamSaved": "Team",
    "NoneBooked": "ClaimsRefused",
    "SignedInSession": "Session",
}


def member_names(union: str) -> set[str]:
    type_ = executable_schema.type_map[union]
    assert isinstance(type_, GraphQLUnionType)
    return {member.name for member in type_.types}


def test_every_union_is_compared() -> None:
    unions = {
        name
        for name, type_ in executable_schema.type_map.items()
        if isinstance(type_, GraphQLUnionType)
    }
    assert unions == OUTCOMES.keys() | WITHOUT_OUTCOME


@pytest.mark.parametrize("union", OUTCOMES)
def test_a_union_lists_exactly_the_outcomes_of_its_use_case(union: str) -> None:
    names = [outcome.__name__ for outcome in get_args(OUTCOMES[union])]
    assert member_names(union) == {SHOWN_AS.get(name, name) for name in names}
