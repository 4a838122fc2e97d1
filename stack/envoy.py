"""The Envoy of the local stack: runs what the sidecar renders of its own configuration."""

from __future__ import annotations

import http.client
import resource
import subprocess
import sys
from pathlib import Path

from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings
from stack.net import UnixHTTPConnection
from stack.process import Process, StackError

_BINARY = Path(sys.executable).with_name("envoy")


def validate(config: Path) -> None:
    """Let Envoy itself check a configuration file.

    Raises:
        StackError: Envoy refuses it; the message is Envoy's last line.
    """
    done = subprocess.run(
        [_BINARY, "--mode", "validate", "--log-level", "error", "-c", config],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StackError(f"Envoy refuses {config.name}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def allow_descriptors(needed: int) -> None:
    """Let this process, and those it starts, have so many file descriptors.

    Raises:
        StackError: the system allows fewer.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise StackError(
            f"Envoy may need {needed} open files, but the system allows {hard}: raise the limit (ulimit -Hn)."
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Envoy:
    """A running Envoy."""

    def __init__(self, settings: EnvoySettings, run_dir: Path, configuration: str | None = None) -> None:
        """Start it, with what is rendered of ``settings`` unless there is another ``configuration``.

        Raises:
            StackError: the system allows fewer open files than it may need.
        """
        allow_descriptors(settings.descriptors)
        self.settings = settings
        config = run_dir / "envoy.yaml"
        config.write_text(configuration or render(settings))
        self.process = Process(
            "Envoy",
            # Hot restart would tie all Envoys of the machine together through one piece of shared memory.
            [
                str(_BINARY),
                "-c",
                str(config),
                "--concurrency",
                str(settings.threads),
                "--disable-hot-restart",
                "--log-level",
                "warning",
                # The access log is written after 10 seconds by default.
                "--file-flush-interval-msec",
                "200",
            ],
            run_dir / "envoy.log",
        )

    def wait_ready(self, seconds: float = 30) -> None:
        """Wait until the listeners take requests.

        Raises:
            StackError: Envoy ended or was not ready in time.
        """
        self.process.wait_until(self._live, seconds)

    def _live(self) -> bool:
        try:
            return self.admin("/ready").strip() == "LIVE"
        except OSError:
            return False

    def admin(self, path: str) -> str:
        """The answer of Envoy's admin interface to a GET."""
        connection = UnixHTTPConnection(self.settings.admin_socket)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def stats(self, prefix: str) -> dict[str, int]:
        """Counters and gauges whose name starts with ``prefix``."""
        lines = self.admin(f"/stats?filter=^{prefix}&type=All").splitlines()
        pairs = (line.rsplit(": ", 1) for line in lines)
        return {name: int(value) for name, value in pairs if value.isdigit()}
