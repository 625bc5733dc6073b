"""compose.yaml and Kubernetes: no image with a published hole, and no open server."""

import json
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from slotlock.cli.main import main
from slotlock.devserver.binaries import MONGOD
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from tests.support.apps.processes import app_environment, app_process
from tests.support.polling import wait_until

ROOT = Path(__file__).parent.parent.parent
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
IMAGES: list[dict[str, Any]] = yaml.safe_load((ROOT / "deploy" / "images.yaml").read_text())
OUR_IMAGE = "slotlock"


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, such as 8.1.11-alpine."""
    return tuple(map(int, text.partition("-")[0].split(".")))


def named_images() -> dict[str, str]:
    """Return the version of each image that a file names, by its name."""
    files = [ROOT / "compose.yaml", ROOT / "Dockerfile", *KUBERNETES.rglob("*.yaml")]
    pattern = re.compile(r"^(?: *-? *image:|FROM) ([^\s:@]+)(?::([\w.-]+))?", re.MULTILINE)
    found = [named for file in files for named in pattern.findall(file.read_text())]
    return dict(named for named in found if named[0] != OUR_IMAGE)


def test_no_file_names_an_image_older_than_the_list() -> None:
    listed = {image["image"]: image["version"] for image in IMAGES}
    named = named_images()
    assert named.keys() == listed.keys()
    for image, named_version in named.items():
        assert version(named_version) >= version(listed[image]), image


def test_no_listed_version_has_one_of_its_published_holes() -> None:
    for image in IMAGES:
        assert image["checked"]
        for hole, closed_in in image["holes"].items():
            assert version(image["version"]) >= version(closed_in), hole


def test_compose_publishes_only_the_app_and_only_to_its_machine() -> None:
    services = COMPOSE["services"]
    assert {name for name in services if "ports" in services[name]} == {"app"}
    assert all(port.startswith("127.0.0.1:") for port in services["app"]["ports"])
    for name in services.keys() - {"app"}:
        assert services[name]["networks"] == ["data"], name
    assert COMPOSE["networks"]["data"] == {"internal": True}


def test_compose_starts_only_with_the_secrets_that_make_writes() -> None:
    text = (ROOT / "compose.yaml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    (secrets,) = re.findall(r"^SECRETS := (.+)$", makefile, re.MULTILINE)
    assert set(re.findall(r"\$\{(\w+):\?run make secrets\}", text)) == set(secrets.split())
    assert "://slotlock:${MONGO_PASSWORD:?" in text
    assert "redis://:${VALKEY_PASSWORD:?" in text
    assert "--keyFile" in COMPOSE["services"]["mongo"]["command"]
    assert "--requirepass" in COMPOSE["services"]["valkey"]["command"]


def test_only_the_ingress_controller_and_prometheus_reach_the_pods() -> None:
    everyone, app = yaml.safe_load_all((KUBERNETES / "base" / "network-policy.yaml").read_text())
    selected = everyone["spec"]["podSelector"]["matchLabels"].items()
    for name in ("app", "worker", "migrate"):
        (document,) = yaml.safe_load_all((KUBERNETES / "base" / f"{name}.yaml").read_text())
        assert selected <= document["spec"]["template"]["metadata"]["labels"].items(), name
    assert everyone["spec"]["policyTypes"] == ["Ingress", "Egress"]
    sources = [
        source["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
        for policy in (everyone, app)
        for rule in policy["spec"]["ingress"]
        for source in rule["from"]
    ]
    assert sources == ["prometheus", "ingress-nginx"]


def test_only_an_overlay_names_a_proxy_and_no_network_of_all_pods() -> None:
    assert "SLOTLOCK_TRUSTED_PROXIES" not in (KUBERNETES / "base" / "config-map.yaml").read_text()
    overlay = yaml.safe_load((KUBERNETES / "overlays/example/kustomization.yaml").read_text())
    operations = yaml.safe_load(overlay["patches"][0]["patch"])
    values = {operation["path"]: operation["value"] for operation in operations}
    assert int(values["/data/SLOTLOCK_TRUSTED_PROXIES"].partition("/")[2]) >= 24


def test_the_user_that_compose_creates_may_do_all_that_slotlock_does(
    servers: EmbeddedServers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = (ROOT / "deploy" / "compose" / "mongodb.js").read_text()
    found = re.findall(r'{ role: "(\w+)", db: "(\w+)" }', script)
    with embedded_servers(tmp_path, redis_url=servers.redis_url) as unprotected:
        with MongoClient[dict[str, Any]](unprotected.mongo_url) as client:
            roles = [{"role": role, "db": database} for role, database in found]
            client.slotlock.command("createUser", "slotlock", pwd="secret", roles=roles)
        (mongod,) = unprotected.processes
    key = tmp_path / "mongod.key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o400)
    arguments = ("--port", str(mongod.port), *MONGOD.options, "--keyFile", str(key))
    url = f"mongodb://slotlock:secret@127.0.0.1:{mongod.port}/slotlock?replicaSet=rs0"

    hurried: dict[str, Any] = {"serverSelectionTimeoutMS": 1_000}

    def is_ready() -> bool:
        with suppress(PyMongoError), MongoClient[dict[str, Any]](url, **hurried) as client:
            return bool(client.admin.command("hello")["isWritablePrimary"])
        return False

    command = [mongod.binary_path, *mongod.data_dir_arguments, *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(is_ready, "mongod accepts the user of compose.yaml")
            settings = app_environment(servers, "unused") | {"SLOTLOCK_MONGO_URL": url}
            for name, value in settings.items():
                monkeypatch.setenv(name, value)
            with app_process(settings, tmp_path) as app:
                assert main(["doctor"]) == 0
                assert "not checked" not in capsys.readouterr().out
                results = tmp_path / "results.json"
                assert main(["simulate", "--url", app.url, "--results", str(results)]) == 0
                assert json.loads(results.read_text())["invariants"]
            file = os.fspath(tmp_path / "slotlock.backup")
            assert main(["backup", file]) == 0
            assert main(["restore", file, "--replace", "--yes"]) == 0
        finally:
            process.kill()
