"""A real PostgreSQL for the tests and the bench: Debian's, with a directory of its own, reached by a Unix socket only.

Nobody but this user can enter the directory that holds the socket and the data, so that no password is needed.
PostgreSQL refuses to run as root: there it runs as the user that Debian's package makes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from stack import apt, procfs
from stack.process import Process, StackError, run

_DEBIAN = Path("/usr/lib/postgresql")
_PACKAGE = "postgresql"
_ADMIN = "postgres"
_ROLE = "sidecar"
_READY_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "",
    # Files beside the data, which go with it; shared memory would stay behind when the server is killed.
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "200",
    "unix_socket_permissions": "0700",
    "log_min_messages": "warning",
}


def install(progress: Callable[[str], None]) -> None:
    """Install Debian's PostgreSQL, unless it is there.

    Raises:
        StackError: it cannot be had; the message names the package.
    """
    if _programs() is not None:
        return
    apt.install(_PACKAGE, progress)
    if _programs() is None:
        raise StackError(f"PostgreSQL is needed; on Debian: sudo apt-get install {_PACKAGE}")


def _programs() -> Path | None:
    """The directory of the newest version's programs."""
    found = {
        int(path.parent.parent.name): path.parent
        for path in _DEBIAN.glob("*/bin/postgres")
        if re.fullmatch(r"\d+", path.parent.parent.name)
    }
    return found[max(found)] if found else None


class Postgres:
    """A PostgreSQL server: it runs from its making to :meth:`stop`, which removes its data."""

    def __init__(self, log: Path, *, sync: bool) -> None:
        """Make an empty server and start it.

        With ``sync`` it waits for the disk, as one that serves must; without, it outlives :meth:`kill` all the same,
        which takes nothing from the system's cache.

        Raises:
            StackError: PostgreSQL is not installed, or does not start.
        """
        programs = _programs()
        if programs is None:
            raise StackError(f"PostgreSQL is needed; on Debian: sudo apt-get install {_PACKAGE}")
        self.programs = programs
        self._log = log
        self._settings = _SETTINGS | {"fsync": "on" if sync else "off"}
        self._numbers = itertools.count()
        self._user = _ADMIN if os.geteuid() == 0 else None
        # Not in the directory of a test, which another user could not enter, and whose path is long for a socket.
        self.directory = Path(tempfile.mkdtemp(prefix="responses-postgres-"))
        try:
            self._make()
            self.start()
            self.administer("CREATE ROLE {} LOGIN", _ROLE)
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    @property
    def data(self) -> Path:
        """The directory of all databases."""
        return self.directory / "data"

    def start(self) -> None:
        """Start the server, after :meth:`kill` or :meth:`end`.

        Raises:
            StackError: it ended, or was not ready in time.
        """
        settings = self._settings | {"unix_socket_directories": str(self.directory)}
        command = [str(self.programs / "postgres"), "-D", str(self.data)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        self.process = Process("PostgreSQL", command, self._log, directory=self.directory, user=self._user)
        self.process.wait_until(self.ready, _READY_SECONDS)

    def ready(self) -> bool:
        """Whether the server takes connections."""
        try:
            self.administer("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        """The URL of a database, for its owner, who can do nothing else on the server."""
        return f"postgresql://{_ROLE}@/{database}?host={self.directory}"

    def create_database(self, template: str = "template0") -> str:
        """Make a database, empty or a copy of another; its name."""
        name = f"store_{next(self._numbers)}"
        self.administer("CREATE DATABASE {} OWNER {} TEMPLATE {}", name, _ROLE, template)
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, and end the connections to it. With ``sync`` it writes all others to the disk first."""
        self.administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def administer(self, statement: LiteralString, *names: str) -> None:
        """Run one statement as the server's administrator; each ``{}`` becomes one of ``names``."""
        with psycopg.connect(host=str(self.directory), user=_ADMIN, dbname="postgres", autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def kill(self) -> None:
        """End the server and all its processes at once."""
        # The seventh line is the key and the identifier of its System V shared memory, which would stay behind.
        noted = (self.data / "postmaster.pid").read_text().splitlines()
        # Each of its processes leads a session of its own.
        children = procfs.children(self.process.pid)
        self.process.kill()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["ipcrm", "--shmem-id", noted[6].split()[1]], capture_output=True, check=False)

    def end(self) -> None:
        """End the server in order; open transactions are rolled back."""
        self.process.stop(ask=signal.SIGINT)

    def stop(self) -> None:
        """End the server and remove its data."""
        # Its immediate shutdown, which writes no data, and leaves no shared memory behind, as being killed would.
        self.process.stop(ask=signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _make(self) -> None:
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        run(
            [
                *(self.programs / "initdb", "-D", self.data, f"--username={_ADMIN}", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C", "--no-sync"),
            ],
            "PostgreSQL's data could not be made",
            self.directory,
            self._user,
        )
