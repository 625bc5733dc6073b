"""Operators import courses without a running app."""

import asyncio
import json
import secrets
from datetime import timedelta
from pathlib import Path

import pytest

from slotlock.api.backend import open_backend
from slotlock.api.settings.settings import read_settings
from slotlock.auth.accounts import create_user
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.users.user import Role, User
from slotlock.services.campaigns import campaigns
from tests.support.apps.processes import app_environment
from tests.support.cli.command_line import command_errors, replace_environment, run_command
from tests.support.stores.users import auth_for_database

COURSES = """number,title,date,start time,end time,places,teacher
A,Chess,2035-09-01,8:00,9:00,12,Ms. Vogel
B,Go,2035-09-02,8:00,9:00,12,
"""


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> None:
    """Set the settings of an operator and remove all others."""
    replace_environment(monkeypatch, app_environment(servers, "course-files"))


async def add_campaign(login_name: str) -> str:
    """Create an organizer and a campaign, and return its id."""
    settings = read_settings()
    async with auth_for_database(settings.mongo_url or "") as auth, open_backend(settings) as made:
        user = await create_user(auth, "Olga", login_name, "correct horse", Role.ORGANIZER)
        assert isinstance(user, User)
        now = made.services.now()
        draft = CampaignDraft("Courses", now, now + timedelta(days=9))
        campaign = await campaigns.create(made.services, draft, user.id)
    assert isinstance(campaign, CampaignSaved)
    return f"campaign_{campaign.campaign.id}"


@pytest.mark.usefixtures("environ")
def test_a_dry_run_changes_nothing_and_an_import_runs_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, olga = tmp_path / "courses.csv", f"olga@{secrets.token_hex(8)}.test"
    file.write_text(COURSES)
    campaign = asyncio.run(add_campaign(olga))
    importing: tuple[str, ...] = (
        "slots",
        "import",
        str(file),
        "--campaign",
        campaign,
        "--by",
        olga,
    )
    (problem,) = command_errors(capsys, *importing)
    assert problem.startswith("line 2, teacher: There is no resource")
    importing += ("--create-resources",)
    for _ in range(2):
        counts, new, advice = run_command(capsys, *importing).splitlines()
        assert counts == "2 created, 0 updated, 0 unchanged, 0 not in the file"
        assert new == "new resources: Ms. Vogel"
        assert "--apply makes these changes" in advice
    run_command(capsys, *importing, "--apply")
    report = json.loads(run_command(capsys, *importing, "--apply", "--json"))
    assert (report["created"], report["unchanged"], report["newResources"]) == (0, 2, [])
    for changed, text in (
        (("--by", "ben@school.example"), "no organizer"),
        (("--campaign", "c"), "is not the id of a campaign"),
        (("--time-zone", "Berlin"), "IANA"),
    ):
        (line,) = command_errors(capsys, *importing, *changed)
        assert text in line
