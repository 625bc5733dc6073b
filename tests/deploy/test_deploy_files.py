"""The files in deploy/ are valid, complete, and name only what slotlock has."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from slotlock.api.settings.env_file import read_env_file
from slotlock.api.settings.settings import DECLARATIONS, Settings
from slotlock.cli.commands.parser import command_parser
from tests.support.apps.processes import AppProcess
from tests.support.polling import wait_until

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
ENV_EXAMPLE = DEPLOY / "systemd" / "slotlock.env.example"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SOCKET = DEPLOY / "systemd" / "slotlock.socket"
KUSTOMIZATIONS = sorted(KUBERNETES.rglob("kustomization.yaml"))
MANIFESTS = sorted(set(KUBERNETES.rglob("*.yaml")) - set(KUSTOMIZATIONS))
# The oldest and the newest version of Kubernetes that the manifests are checked against.
KUBERNETES_VERSIONS = ("1.28", "1.33")


def documents(file: Path) -> list[dict[str, Any]]:
    """Return the documents of a YAML file."""
    return list(yaml.safe_load_all(file.read_text()))


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and pod specifications of all manifests."""
    for file in MANIFESTS:
        for document in documents(file):
            template = document.get("spec", {}).get("template")
            if template:
                yield document["metadata"]["name"], template["spec"]


def environment(container: dict[str, Any]) -> dict[str, str]:
    """Return the variables that a container sets itself."""
    return {variable["name"]: variable["value"] for variable in container["env"]}


def config() -> dict[str, str]:
    """Return the settings of the config map."""
    (document,) = documents(KUBERNETES / "base" / "config-map.yaml")
    data: dict[str, str] = document["data"]
    return data


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_every_manifest_is_valid(file: Path, version: str) -> None:
    for document in documents(file):
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=lambda file: file.parent.name)
def test_every_file_is_in_its_kustomization_and_exists(file: Path) -> None:
    (kustomization,) = documents(file)
    listed = {(file.parent / name).resolve() for name in kustomization["resources"]}
    assert all(path.exists() for path in listed)
    assert {path for path in listed if path.suffix} == set(file.parent.glob("*.yaml")) - {file}


def test_the_example_overlay_builds() -> None:
    commands = {"kustomize": ["build"], "kubectl": ["kustomize"]}
    program = next((name for name in commands if shutil.which(name)), None)
    if program is None:
        pytest.skip("neither kustomize nor kubectl is on PATH")
    command = [program, *commands[program], str(KUBERNETES / "overlays" / "example")]
    built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(built)}
    assert {
        ("Deployment", "slotlock"),
        ("Deployment", "slotlock-worker"),
        ("Ingress", "slotlock"),
    } <= names
    assert "image: slotlock\n" not in built


def test_every_variable_is_a_setting() -> None:
    known = {f"SLOTLOCK_{name.upper()}" for name in DECLARATIONS}
    files = [
        file for file in DEPLOY.rglob("*") if file.is_file() and "monitoring" not in file.parts
    ]
    for file in (*files, ROOT / "compose.yaml", ROOT / "Dockerfile"):
        found = set(re.findall(r"\bSLOTLOCK_[A-Z_]+[A-Z]\b", file.read_text()))
        assert found <= known, file


def test_every_container_runs_a_command_of_slotlock_without_privileges() -> None:
    commands = set()
    for name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert f"--uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
        # The service would set SLOTLOCK_PORT=tcp://..., which is no port to listen on.
        assert pod["enableServiceLinks"] is False, name
        (container,) = pod["containers"]
        command_parser().parse_args(container["args"])
        commands.add(container["args"][0])
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"], name
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= container["resources"].keys()
    assert commands == {"serve", "worker", "migrate"}
    assert config()["SLOTLOCK_QUEUE_WORKER"] == "off"


def test_the_app_has_time_for_a_graceful_stop() -> None:
    app = dict(pods())["slotlock"]
    (container,) = app["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    stop = int(config()["SLOTLOCK_GRACEFUL_STOP_S"])
    assert app["terminationGracePeriodSeconds"] > pause + stop + 6
    default = Settings.graceful_stop_s
    for unit in UNITS:
        assert int(directives(unit)["TimeoutStopSec"][0]) > default


@pytest.mark.parametrize(
    ("name", "readiness"), [("slotlock", "/readyz?of=mongodb"), ("slotlock-worker", "/readyz")]
)
def test_the_paths_of_the_probes_respond(app: AppProcess, name: str, readiness: str) -> None:
    (container,) = dict(pods())[name]["containers"]
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/healthz", "/healthz", readiness]
    assert {probe["port"] for probe in probes} == {container["ports"][0]["name"]}
    for probe in probes:
        wait_until(partial(responds, app.url + probe["path"]), probe["path"])


def responds(url: str) -> bool:
    """Return whether the app says that it is fine; a busy machine may delay its databases."""
    return httpx.get(url, trust_env=False, timeout=30).status_code == 200


def test_prometheus_scrapes_the_ports_on_which_the_app_and_the_worker_listen() -> None:
    ports = {"app": Settings.port}
    (worker,) = dict(pods())["slotlock-worker"]["containers"]
    ports["worker"] = int(environment(worker)["SLOTLOCK_QUEUE_WORKER_METRICS_PORT"])
    for name, port in ports.items():
        (document,) = documents(KUBERNETES / "base" / f"{name}.yaml")
        template = document["spec"]["template"]
        assert template["metadata"]["annotations"] == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
            "prometheus.io/path": "/metrics",
        }
        (container,) = template["spec"]["containers"]
        assert container["ports"] == [{"name": "http", "containerPort": port}]


def test_units_proxies_compose_and_guides_name_the_same_ports() -> None:
    settings = read_env_file(ENV_EXAMPLE)
    app = f"127.0.0.1:{settings['SLOTLOCK_PORT']}"
    worker = f"127.0.0.1:{settings['SLOTLOCK_QUEUE_WORKER_METRICS_PORT']}"
    assert app != worker
    assert settings["SLOTLOCK_PORT"] == str(Settings.port)
    nginx = (DEPLOY / "nginx" / "slotlock.conf").read_text()
    assert re.findall(r"^\s*server (\S+:\d+) ", nginx, re.MULTILINE) == [app]
    caddy = (DEPLOY / "caddy" / "Caddyfile").read_text()
    assert re.findall(r"^\s*reverse_proxy (.+) {$", caddy, re.MULTILINE) == [app]
    for proxy in (nginx, caddy):  # another process takes neither port
        others = set(re.findall(r"127\.0\.0\.1:\d+", proxy)) - {app}
        assert len(others) == 1
        assert worker not in others
    assert directives(SOCKET)["ListenStream"] == [app]
    (published,) = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["app"]["ports"]
    assert published.endswith(f":${{SLOTLOCK_PORT:-{Settings.port}}}")
    monitoring = (ROOT / "docs" / "guides" / "monitoring.md").read_text()
    ports = [address.rpartition(":")[2] for address in (app, worker)]
    scraped, probed = re.findall(r"- targets: \[(.+)\]", monitoring)
    assert re.findall(r":(\d+)", scraped) == re.findall(r":(\d+)", probed) == ports


def test_the_secrets_are_none() -> None:
    (secret,) = documents(KUBERNETES / "overlays" / "example" / "secret.yaml")
    assert secret["stringData"]["SLOTLOCK_SECRET_KEY"] == "REPLACE-ME"
    assert read_env_file(ENV_EXAMPLE)["SLOTLOCK_SECRET_KEY"] == "SECRET-KEY"


def test_a_shell_reads_the_example_of_the_units_as_slotlock_does(tmp_path: Path) -> None:
    file = tmp_path / "slotlock.env"
    file.write_text(re.sub("^#(?=SLOTLOCK_)", "", ENV_EXAMPLE.read_text(), flags=re.MULTILINE))
    variables = read_env_file(file)
    assert variables["SLOTLOCK_MAIL_FROM"] == "School <noreply@example.org>"
    script = f"set -eua; . {file}; exec env -0"
    shell = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    read = dict(line.split("=", 1) for line in shell.stdout.split("\0") if line)
    assert variables.items() <= read.items()
    assert {name for name in read.keys() - os.environ.keys() if "SLOTLOCK" in name} <= set(
        variables
    )


def directives(unit: Path) -> dict[str, list[str]]:
    """Return the values of all directives of a unit."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_with_limits(unit: Path) -> None:
    values = directives(unit)
    program, *arguments = shlex.split(values["ExecStart"][0])
    assert program.endswith("/slotlock")
    command_parser().parse_args(arguments)
    assert int(values["LimitNOFILE"][0]) >= 8192
    assert values["NoNewPrivileges"] == ["yes"]


def test_the_app_gets_the_socket_of_its_unit() -> None:
    (app,) = (unit for unit in UNITS if unit.stem == SOCKET.stem)
    assert directives(app)["Requires"] == [SOCKET.name]
    guide = (ROOT / "docs" / "guides" / "deployment.md").read_text()
    assert f" deploy/systemd/{SOCKET.name} /etc/systemd/system/\n" in guide
    assert f"systemctl enable --now {SOCKET.name} " in guide


def test_the_guide_installs_slotlock_where_the_units_expect_it() -> None:
    guide = (ROOT / "docs" / "guides" / "deployment.md").read_text()
    (folder,) = {directives(unit)["ExecStart"][0].partition("/bin/")[0] for unit in UNITS}
    assert f"python3 -m venv {folder}\n" in guide
    (lock,) = re.findall(rf"{folder}/bin/pip install --require-hashes -r (\S+)", guide)
    assert (ROOT / lock).exists()
    packages = " ".join(f"packages/{path.name}" for path in sorted((ROOT / "packages").iterdir()))
    assert f"{folder}/bin/pip install --no-deps --no-build-isolation {packages} .\n" in guide


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_knows_every_directive(tmp_path: Path) -> None:
    for unit in (*UNITS, SOCKET):
        text = unit.read_text().replace("/opt/slotlock/bin/slotlock", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    command = ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stderr
    complaints = [line for line in verified.stderr.splitlines() if "slotlock" in line]
    assert complaints == []
