"""Put load on the apps, end them as a server is ended, and make a report of each: `python -m live.load`."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from live.handbook import QUESTIONS

APPS = ("fastapi_app", "llama_index_app")
REQUESTS = 300
AT_ONCE = 20


def free_port() -> int:
    """Return a port on loopback that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def is_up(url: str) -> bool:
    """Return whether the app answers."""
    try:
        ask(f"{url}/ask?q=hello")
    except URLError:
        return False
    return True


def wait_until_up(url: str, app: "subprocess.Popen[bytes]") -> None:
    """Wait until the app answers."""
    for _ in range(300):
        if is_up(url):
            return
        if app.poll() is not None:
            raise SystemExit("the app ended before it was up")
        time.sleep(0.2)
    raise SystemExit("the app did not come up within a minute")


def ask(url: str) -> float:
    """Ask one question; return how many milliseconds the answer took."""
    started = time.perf_counter()
    with urlopen(url, timeout=60) as response:  # noqa: S310 - our own app
        response.read()
    return (time.perf_counter() - started) * 1e3


def load(name: str) -> None:
    """Run one app under load and make its report."""
    database = Path(f"{name}.db").absolute()
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", f"live.{name}:app", "--port", str(port), "--log-level", "warning"]
    environ = os.environ | {"DATABASE": str(database)}
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], env=environ) as app:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(url, app)
            questions = [f"{url}/ask?q={quote(QUESTIONS[i % len(QUESTIONS)])}" for i in range(REQUESTS)]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                times = sorted(pool.map(ask, questions))
        finally:
            app.send_signal(signal.SIGINT)  # the lifespan closes the monitor, which scores what waits
    print(f"{name}: {REQUESTS} requests, {AT_ONCE} at once, 0 failed", end="; ")
    print(f"median {times[REQUESTS // 2]:.1f} ms, 99 % within {times[REQUESTS * 99 // 100]:.1f} ms")
    report = database.with_suffix(".html")
    subprocess.run([sys.executable, "-m", "ragstone", "report", str(database), "--out", str(report)], check=True)


if __name__ == "__main__":
    for each in sys.argv[1:] or APPS:
        load(each)
