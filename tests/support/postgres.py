"""A PostgreSQL server of the tests' own, from the binaries of the system's packages, in a temporary folder."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

MISSING = "PostgreSQL is not installed; on Debian and Ubuntu: apt-get install postgresql"
PASSWORD = "p@ss/word:1"
QUOTED = "p%40ss%2Fword%3A1"


def find_binaries() -> Path | None:
    """The folder with initdb and postgres; the newest, where there are several."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    packaged = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdecimal()]
    folders += sorted(packaged, key=lambda path: -int(path.parent.name))
    return next((path for path in folders if (path / "initdb").exists() and (path / "postgres").exists()), None)


def install() -> None:
    """From Debian's packages, on a machine of continuous integration only."""
    if os.environ.get("CI") == "true" and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run(["apt-get", *command], env=environ, check=False, timeout=600, **quiet)


class PostgresServer:
    """One server on a free port of the loopback interface, with a superuser "ragstone" and its password."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="ragstone-pg-"))
        self._user = {}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            import pwd

            names = {entry.pw_name: entry for entry in pwd.getpwall()}
            entry = names.get("postgres") or names["nobody"]
            self._user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
        self.port = free_port()
        self._made = 0
        self._process: subprocess.Popen | None = None
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ("--username=ragstone", "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-sync")
        self._run("initdb", "-D", str(self._folder / "data"), "--no-locale", *options)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False, **self._user)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "deadlock_timeout": "200ms",
            "log_min_messages": "error",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *words]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, **self._user)
        end = time.monotonic() + 60
        while not self._answers():
            text = (self._folder / "log").read_text(errors="replace")
            assert self._process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.1)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres", driver="postgresql"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT stops it in order; SIGQUIT as a crash would, with all connections cut."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def new_schema(self) -> str:
        """Make an empty schema and return the URL whose tables are in it: much quicker than a database."""
        import psycopg

        self._made += 1
        name = f"test_{self._made}"
        with psycopg.connect(self.url("postgres", driver="postgresql"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}?options=-csearch_path%3D{name}"

    def new_database(self) -> str:
        """Make an empty database and return its name."""
        import psycopg

        self._made += 1
        name = f"test_{self._made}"
        with psycopg.connect(self.url("postgres", driver="postgresql"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        return f"{driver}://ragstone:{QUOTED}@127.0.0.1:{self.port}/{database}"

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)  # what is in it is not needed any more
        shutil.rmtree(self._folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
