"""deploy/nginx.conf is valid, and keeps slow clients away from the service."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.support.serving import quiet_port, serving, until

CONF = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed: apt-get install nginx-light")
def test_nginx_keeps_slow_clients_away_from_the_service(tmp_path: Path) -> None:
    assert NGINX is not None
    block = CONF.read_text(encoding="utf-8")
    port = quiet_port()
    with serving(tmp_path, "--allow-host", "shop.example") as server:
        text = block.replace("banditree:8000", server.url.removeprefix("http://")).replace(
            "listen 8080", f"listen 127.0.0.1:{port}"
        )
        text = text.replace("client_header_timeout 10s", "client_header_timeout 1s")
        text = f"daemon off;\npid {tmp_path}/nginx.pid;\nerror_log {tmp_path}/error.log;\n" + text.replace(
            "http {",
            "http {\naccess_log off;\n"
            + "".join(
                f"{what}_temp_path {tmp_path}/{what};\n"
                for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            ),
        )
        conf = tmp_path / "nginx.conf"
        conf.write_text(text)
        checked = subprocess.run([NGINX, "-t", "-c", str(conf)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        proxy = subprocess.Popen([NGINX, "-c", str(conf)])
        try:
            until(lambda: _connects(port))
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", headers={"host": "shop.example"}, trust_env=False
            ) as http:
                id_ = http.post("/v1/decisions").json()["id"]
                assert http.put(f"/v1/decisions/{id_}/reward", json={"reward": 1}).json() == {"status": "applied"}
                assert len(http.get("/v1/log").text.splitlines()) == 1
                with http.stream("GET", "/v1/experiments/main/events", headers={"last-event-id": "0"}) as stream:
                    assert next(line for line in stream.iter_lines() if line.startswith("event: "))
            with socket.create_connection(("127.0.0.1", int(port))) as slow:
                slow.settimeout(20)
                slow.sendall(b"POST /v1/decisions HTTP/1.1\r\nhost: shop")
                began = time.monotonic()
                assert slow.recv(4096) == b"" or time.monotonic() - began < 15
        finally:
            proxy.terminate()
            proxy.wait(20)


def _connects(port: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(port))).close()
    except OSError:
        return False
    return True
