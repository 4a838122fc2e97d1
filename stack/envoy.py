"""The Envoy of the local stack: runs what the sidecar renders of its own configuration."""

from __future__ import annotations

import http.client
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
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


@dataclass(frozen=True)
class HotRestart:
    """An Envoy that another one may take the place of, as docs/upgrades.md has it.

    ``base_id`` names the family on this machine, whose members' ``epoch`` counts from 0 on. With the next one this one
    takes no new connections, and ends after ``seconds``.
    """

    base_id: int
    epoch: int = 0
    seconds: int = 20

    @property
    def options(self) -> list[str]:
        """Those of the command line."""
        values = {
            "--base-id": self.base_id,
            "--restart-epoch": self.epoch,
            "--drain-time-s": self.seconds // 2,
            "--parent-shutdown-time-s": self.seconds,
        }
        options = [word for name, value in values.items() for word in (name, str(value))]
        return [*options, "--drain-strategy", "immediate"]

    def forget(self) -> None:
        """The last one of the family has ended: remove the memory that they have shared."""
        # Envoy multiplies what it is told.
        Path(f"/dev/shm/envoy_shared_memory_{self.base_id * 10}").unlink(missing_ok=True)


class Envoy:
    """A running Envoy."""

    def __init__(
        self,
        settings: EnvoySettings,
        run_dir: Path,
        configuration: str | None = None,
        restart: HotRestart | None = None,
    ) -> None:
        """Start it, with what is rendered of ``settings`` unless there is another ``configuration``.

        Without ``restart`` no other can take its place: all Envoys of the machine would be one family.

        Raises:
            StackError: the system allows fewer open files than it may need.
        """
        allow_descriptors(settings.descriptors)
        self.settings = settings
        self._epoch = restart.epoch if restart else 0
        config = run_dir / "envoy.yaml"
        config.write_text(configuration or render(settings))
        self.process = Process(
            "Envoy",
            [
                str(_BINARY),
                "-c",
                str(config),
                "--concurrency",
                str(settings.threads),
                *(restart.options if restart else ["--disable-hot-restart"]),
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
            told = json.loads(self.admin("/server_info"))
        except (OSError, ValueError):
            return False
        # Until it has taken the place of another, that one answers.
        return bool(told["state"] == "LIVE" and told["command_line_options"]["restart_epoch"] == self._epoch)

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
