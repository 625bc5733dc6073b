"""A proxy with its configuration of deploy/, changed only in its addresses and files."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.app_process import free_port
from conformance.proxies.packages import ProxyMissingError

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CADDY_FILE = DEPLOY / "caddy" / "Caddyfile"
NGINX_FILE = DEPLOY / "nginx" / "slotlock.conf"
START_TIMEOUT_S = 20.0
# The line of an upstream of nginx, or the list of Caddy.
APP_ADDRESS = re.compile(r"^(\s*(?:server|reverse_proxy) )127\.0\.0\.1:8000( .*\n)", re.MULTILINE)


def caddy_command(program: Path, port: int, app_ports: Sequence[int], folder: Path) -> list[str]:
    """Write the configuration without TLS, and return the command that runs Caddy."""
    text = with_app_ports(CADDY_FILE.read_text(), app_ports)
    site = text.replace("slots.example.org {", f"http://127.0.0.1:{port} {{")
    file = folder / "Caddyfile"
    options = f"\n{{\n\tadmin off\n\tstorage file_system {folder}\n"
    file.write_text(site.replace("\n{\n", options, 1))
    return [str(program), "run", "--config", str(file), "--adapter", "caddyfile"]


def nginx_command(program: Path, port: int, app_ports: Sequence[int], folder: Path) -> list[str]:
    """Write the configuration without TLS, and return the command that runs nginx."""
    site = with_app_ports(NGINX_FILE.read_text(), app_ports)
    site = re.sub(r"^\s*ssl_.*\n", "", site, flags=re.MULTILINE)
    site = site.replace("listen 443 ssl http2", f"listen 127.0.0.1:{port}")
    site = site.replace("/var/cache/nginx", str(folder))
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Other users may not enter the folder of the cache.
    as_root = "user root;\n" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(
        f"{as_root}daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\n"
        f"events {{ worker_connections 1024; }}\n"
        f"http {{\naccess_log /dev/stdout;\n{paths}{site}\n}}\n"
    )
    return [str(program), "-c", str(file), "-p", str(folder), "-e", "stderr"]


def with_app_ports(text: str, app_ports: Sequence[int]) -> str:
    """Return a configuration with the processes at these ports instead of the one at 8000."""
    addresses = [f"127.0.0.1:{port}" for port in app_ports]

    def replace(found: re.Match[str]) -> str:
        begin, end = found.groups()
        if end.rstrip().endswith(";"):
            return "".join(f"{begin}{address}{end}" for address in addresses)
        return f"{begin}{' '.join(addresses)}{end}"

    changed, count = APP_ADDRESS.subn(replace, text)
    if count != 1:
        raise ProxyMissingError("the configuration does not name 127.0.0.1:8000 once")
    return changed


@contextmanager
def running_proxy(
    name: str, program: Path, app_ports: Sequence[int], folder: Path
) -> Iterator[int]:
    """Run a proxy in front of both processes, and yield its port. Raises: ProxyMissingError."""
    folder.mkdir(parents=True)
    port = free_port()
    build = caddy_command if name == "caddy" else nginx_command
    log_file = folder / "proxy.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            build(program, port, app_ports, folder), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log_file.read_text(errors="replace").strip().splitlines()[-3:]
                raise ProxyMissingError(f"{name} does not start: {' | '.join(lines)}")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
