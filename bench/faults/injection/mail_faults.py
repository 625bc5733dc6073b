"""Faults of the mail server, which come while mails leave, alone or with faults of others."""

import asyncio
import random
import time
from functools import partial

from bench.faults.injection import mongo_faults, process_faults
from bench.faults.injection.steps import Fault, separate
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.links import LOST, REFUSED, LinkState
from bench.faults.topology.mail_server import MAIL, SLOW_S, FaultMailServer

# A fault comes after so many mails, or after this time.
MAILS_BEFORE, FIRST_MAIL_S = 3, 30.0


async def cut_links(
    state: LinkState, deployment: Deployment, _rng: random.Random, seconds: float
) -> str:
    """Let the mail server refuse connections, or hang."""
    await asyncio.to_thread(deployment.members.end_mail_waits)
    names = [process.name for process in deployment.processes]
    await separate(deployment, names, [MAIL], state, seconds)
    return MAIL


async def misbehave(mode: str, deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Let the mail server answer in this way."""
    await asyncio.to_thread(deployment.members.end_mail_waits)
    deployment.mail_server.mode = mode
    try:
        await asyncio.sleep(seconds)
    finally:
        deployment.mail_server.mode = FaultMailServer.HEALTHY
    return MAIL


async def disturb_sending(
    mode: str, fault: Fault, deployment: Deployment, rng: random.Random, seconds: float
) -> str:
    """Inject another fault while mails leave, to a mail server that is slow, or dies after DATA."""
    count, deadline = deployment.mail_server.count, time.monotonic() + FIRST_MAIL_S
    sending = asyncio.create_task(misbehave(mode, deployment, rng, FIRST_MAIL_S + seconds))
    while deployment.mail_server.count < count + MAILS_BEFORE and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    await asyncio.sleep(rng.uniform(0, SLOW_S))
    try:
        target = await fault(deployment, rng, seconds)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return f"{MAIL}, {target}"


async def kill_all(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Kill all processes, which all send mails."""
    for process in deployment.processes:
        process.kill()
    await asyncio.sleep(seconds / 2)
    await asyncio.gather(*(process.start() for process in deployment.processes))
    return "all processes"


SLOW, DIES = FaultMailServer.SLOW, FaultMailServer.DIES
FAULTS: dict[str, Fault] = {
    "mail server refuses": partial(cut_links, REFUSED),
    "mail server hangs": partial(cut_links, LOST),
    "mail server answers 4xx": partial(misbehave, FaultMailServer.TEMPORARY),
    "mail server answers 5xx": partial(misbehave, FaultMailServer.PERMANENT),
    "mail server dies after DATA": partial(misbehave, DIES),
    "mail leaves: worker killed": partial(disturb_sending, SLOW, process_faults.kill_worker),
    "mail leaves: app killed": partial(disturb_sending, SLOW, process_faults.kill_app),
    "mail leaves: all processes killed": partial(disturb_sending, SLOW, kill_all),
    "mail leaves: primary steps down": partial(disturb_sending, SLOW, mongo_faults.step_down),
    "mail server dies, primary killed": partial(disturb_sending, DIES, mongo_faults.kill_primary),
}
