"""`slotlock doctor` lists the addresses whose mails went to another domain, or that changed."""

from slotlock.cli.doctor.address_checks import check_addresses
from slotlock.cli.doctor.finding import Level
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import open_database
from tests.support.stores.empty_database import empty_database

UNCHANGED = ["ada", "a@x.test", "a@strasse.test", "ü@x.test", "a@bücher.test"]


async def test_addresses_that_mean_what_they_did_are_no_finding(servers: EmbeddedServers) -> None:
    with empty_database(servers) as url:
        async with open_database(url) as database:
            await database["users"].insert_many([{"email": each} for each in UNCHANGED])
            finding = await check_addresses(database)
    assert (finding.level, finding.advice) == (Level.OK, "")


async def test_addresses_that_lead_elsewhere_now_are_listed(servers: EmbeddedServers) -> None:
    changed = ["a@straße.test", "a@i❤.test", "a@xn--bcher-kva.test", "b@xn--bcher-kva.test"]
    with empty_database(servers) as url:
        async with open_database(url) as database:
            await database["users"].insert_many([{"email": each} for each in UNCHANGED + changed])
            finding = await check_addresses(database)
    assert finding.level is Level.WARNING
    assert finding.found.split("; ") == [
        "a@i❤.test is invalid",
        "mails to a@straße.test went to strasse.test, and go to xn--strae-oqa.test",
        "a@xn--bcher-kva.test is read as a@bücher.test, which another account has",
        "b@xn--bcher-kva.test is read as b@bücher.test",
    ]
