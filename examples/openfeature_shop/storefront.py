"""The shop's web server: serves the page, and passes decisions and rewards on to banditree.

Browsers talk to the shop alone. banditree refuses pages of other sites, and its token stays on the server:

    python storefront.py --service http://127.0.0.1:8000 --port 8080
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

HERE = Path(__file__).parent
PASSED_ON = ("/ofrep/v1/evaluate/flags", "/v1/decisions/")  # what a browser may ask of the service
MAX_BYTES = 10_000


class Shop(SimpleHTTPRequestHandler):
    """Serves files of this folder, and passes some requests on."""

    def __init__(self, *args: object, service: str, **options: object) -> None:
        self.service = service
        super().__init__(*args, directory=str(HERE), **options)  # type: ignore[arg-type]

    def do_POST(self) -> None:
        """Evaluate flags."""
        self._pass_on()

    def do_PUT(self) -> None:
        """Report a reward."""
        self._pass_on()

    def _pass_on(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if not self.path.startswith(PASSED_ON) or length > MAX_BYTES:
            self.send_error(404)
            return
        headers = {"content-type": "application/json"}
        if token := os.environ.get("BANDITREE_TOKEN"):
            headers["authorization"] = f"Bearer {token}"
        request = Request(self.service + self.path, self.rfile.read(length), headers, method=self.command)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=5) as answer:
                self._answer(answer.status, answer.read())
        except HTTPError as error:
            self._answer(error.code, error.read())
        except URLError:
            self._answer(503, b'{"error": "the service cannot be reached"}')

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve the shop until Ctrl-C."""
    words = argparse.ArgumentParser(description="A small shop whose offer is chosen by banditree.")
    words.add_argument("--service", default="http://127.0.0.1:8000")
    words.add_argument("--port", type=int, default=8080)
    given = words.parse_args()
    with ThreadingHTTPServer(("127.0.0.1", given.port), partial(Shop, service=given.service)) as server:
        print(f"The shop is at http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
