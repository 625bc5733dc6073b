"""compose.yaml and Kubernetes: no image with a published hole, no open server, every setting."""

import json
import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml

from slotlock.api.settings.settings import DECLARATIONS, env_name
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from tests.deploy.test_whole_path import SECRETS, mongod_of_the_guide
from tests.support.apps.processes import app_environment, app_process

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


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Return a text of compose.yaml with the values of its variables, the innermost first."""
    pattern = re.compile(r"\$\{(\w+)(?::([-?])([^${}]*))?\}")
    while found := pattern.search(text):
        name, operator, default = found.groups()
        value = variables.get(name, "")
        assert value or operator != "?", default
        text = text.replace(found[0], value or (default if operator == "-" else ""))
    return text


def app_environment_of_compose(variables: dict[str, str]) -> dict[str, str]:
    """Return the environment of the app with these variables in .env, as Compose defines it."""
    app = COMPOSE["services"]["app"]
    given = variables if app["env_file"] == ".env" else {}
    own = {name: interpolated(text, variables) for name, text in app["environment"].items()}
    return given | own


def test_every_setting_of_the_env_file_reaches_the_app_and_no_password_of_root_does() -> None:
    written = dict.fromkeys(
        ("MONGO_KEY", "MONGO_ROOT_PASSWORD", "MONGO_PASSWORD", "VALKEY_PASSWORD"), "a secret"
    ) | {"SLOTLOCK_SECRET_KEY": "a key"}
    without = app_environment_of_compose(written)
    assert "a secret@mongo" in without["SLOTLOCK_MONGO_URL"]
    assert without["MONGO_KEY"] == without["MONGO_ROOT_PASSWORD"] == ""
    # The network has the same gateway after each `down` and `up`.
    (network,) = COMPOSE["networks"]["web"]["ipam"]["config"]
    assert without["SLOTLOCK_TRUSTED_PROXIES"] == network["gateway"]
    for name in map(env_name, DECLARATIONS):
        assert app_environment_of_compose(written | {name: "given"})[name] == "given"
    # So does a misspelled one, which the app refuses.
    assert "SLOTLOCK_MISSPELLED" in app_environment_of_compose(
        {**written, "SLOTLOCK_MISSPELLED": "1"}
    )
    (port,) = COMPOSE["services"]["app"]["ports"]
    assert interpolated(port, {"SLOTLOCK_PORT": "9000"}).endswith(":9000")


def test_more_containers_of_the_app_can_start_and_proxies_know_their_addresses() -> None:
    app = COMPOSE["services"]["app"]
    assert "container_name" not in app
    (port,) = app["ports"]
    first, last = re.findall(r":(\d+)-(\d+):", port)[0]
    assert int(last) > int(first)
    (network,) = COMPOSE["networks"]["web"]["ipam"]["config"]
    gateway = ip_address(network["gateway"])
    # Docker gives the lowest free address, and nothing else is in this network.
    assert [name for name, each in COMPOSE["services"].items() if "web" in each["networks"]] == [
        "app"
    ]
    addresses = [f"{gateway + number}:8000" for number in (1, 2)]
    for file in ("deploy/nginx/slotlock.conf", "deploy/caddy/Caddyfile"):
        assert re.findall(r"172\.[\d.]+:\d+", (ROOT / file).read_text()) == addresses, file


def test_compose_leaves_nothing_without_a_name_and_bounds_the_logs() -> None:
    assert COMPOSE["name"] == "slotlock"
    for name, service in COMPOSE["services"].items():
        assert service["logging"] == {"driver": "local"}, name
        named = [each for each in service["volumes"] if not each.startswith("./")]
        assert {each.partition(":")[0] for each in named} <= COMPOSE["volumes"].keys()
    # The image of MongoDB declares this volume, besides that of the data.
    assert COMPOSE["services"]["mongo"]["tmpfs"] == ["/data/configdb"]
    # What runs `slotlock worker` in the image does not listen at the port of the app.
    assert "HEALTHCHECK" not in (ROOT / "Dockerfile").read_text()


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
    with mongod_of_the_guide(tmp_path) as port:
        url = f"mongodb://slotlock:{SECRETS['MONGO_PASSWORD']}@127.0.0.1:{port}/slotlock?replicaSet=rs0"
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
