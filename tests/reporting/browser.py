"""A real browser without a window, and the only net it sees: a proxy of ours that notes every request."""

import json
import os
import re
import shutil
import subprocess
import threading
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_MEASURE = """<!doctype html><link rel="icon" href="data:,"><title>measure</title><pre id="result"></pre>
<iframe id="page" width="WIDTH" height="900" src="/page"></iframe><script>
document.getElementById("page").onload = function () {
  const page = this.contentDocument, width = page.documentElement.clientWidth, wide = [];
  if (OPENED) page.querySelectorAll("details").forEach(each => each.open = true);
  for (const each of page.querySelectorAll("body *")) {
    if (each.closest(".scroll, svg") && !each.matches(".scroll, svg")) continue;
    if (each.getBoundingClientRect().right > width + 1) wide.push(each.tagName + "." + each.getAttribute("class"));
  }
  document.getElementById("result").textContent = JSON.stringify({
    title: page.title, width: width, content: page.documentElement.scrollWidth, wide: wide,
    elements: [...new Set([...page.querySelectorAll("*")].map(each => each.localName))].sort(),
    text: page.body.textContent,
  });
};
</script>"""


def find_chromium() -> str:
    """Return the browser's path; install it where that is ours to do; skip without one."""
    if found := _found():
        return found
    if os.environ.get("CI") == "true" and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        subprocess.run(
            command, capture_output=True, check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    return _found() or pytest.skip(f"no browser: install one of {', '.join(_NAMES)} (Debian: apt-get install chromium)")


def _found() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """Opens pages as http://report.test/page. `requests` are the URLs that it asked for, whatever the host."""

    def __init__(self, program: str, profile: Path) -> None:
        self.requests: list[str] = []
        self._program = program
        self._profile = profile
        self._pages: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def measure(self, page: str, width: int, *, opened: bool = False):
        """Show the page in a frame of some width; say what it holds and what sticks out of it."""
        measure = _MEASURE.replace("WIDTH", str(width)).replace("OPENED", json.dumps(opened))
        self._pages = {"/page": page, "/measure": measure}
        dom = self._run("--dump-dom", "http://report.test/measure").stdout.decode()
        return json.loads(unescape(re.search('<pre id="result">(.*?)</pre>', dom, re.DOTALL)[1]))

    def _run(self, *args: str) -> "subprocess.CompletedProcess[bytes]":
        self.requests.clear()
        flags = (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--virtual-time-budget=5000", "--proxy-bypass-list=<-loopback>", f"--user-data-dir={self._profile}",
            f"--proxy-server=http://127.0.0.1:{self._server.server_port}",
        )  # fmt: skip
        return subprocess.run([self._program, *flags, *args], capture_output=True, check=True, timeout=120)

    def _handler(browser):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                browser.requests.append(self.path)
                body = browser._pages.get(self.path.removeprefix("http://report.test"))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((body or "").encode())

            def do_CONNECT(self) -> None:
                browser.requests.append(self.path)
                self.send_error(403)

            def log_message(self, *args: object) -> None:
                pass

        return Handler
