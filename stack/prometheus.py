"""A real Prometheus for the tests: Debian's, which scrapes one node and looks at the alerts of ``deploy/``."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from stack import debian
from stack.net import DIRECT, free_port
from stack.paths import LOCAL, ROOT
from stack.process import Process, run

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"

_DIRECTORY = LOCAL / "prometheus"
_INTERVAL = "1s"


def install(progress: Callable[[str], None]) -> None:
    """Download it, unless it is there.

    Raises:
        StackError: it cannot be had.
    """
    if not _DIRECTORY.exists():
        progress("Downloading Debian's Prometheus")
        _program()


def _program() -> Path:
    return debian.unpack_prometheus(_DIRECTORY)


def check_config(config: Path) -> None:
    """Have promtool read a configuration and the rules that it names.

    Raises:
        StackError: it finds a mistake.
    """
    run([_program().with_name("promtool"), "check", "config", config], f"{config.name} is not valid")


class Prometheus:
    """A running Prometheus; what it keeps is in ``run_dir``."""

    def __init__(self, run_dir: Path, node: str) -> None:
        """Start it for the node whose admin interface is ``node``, ``host:port``; the job's name is that of the docs.

        Raises:
            StackError: it cannot be had.
        """
        config = run_dir / "prometheus.yml"
        config.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
                    "rule_files": [str(ALERTS)],
                    "scrape_configs": [{"job_name": "responses-sidecar", "static_configs": [{"targets": [node]}]}],
                }
            )
        )
        self._url = f"127.0.0.1:{free_port()}"
        self.process = Process(
            "Prometheus",
            [
                str(_program()),
                f"--config.file={config}",
                f"--storage.tsdb.path={run_dir / 'data'}",
                f"--web.listen-address={self._url}",
            ],
            run_dir / "prometheus.log",
        )

    def values(self, expression: str) -> list[float]:
        """What ``expression`` comes to now, for each set of labels, without what is no number.

        Raises:
            OSError: Prometheus refuses it, or does not answer.
        """
        found = self._ask("query", query=expression)["result"]
        values = [float(sample["value"][1]) for sample in found]
        return [value for value in values if not isnan(value)]

    def rules(self) -> list[dict[str, Any]]:
        """All rules, and how their evaluation goes."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, what: str, **parameters: str) -> Any:
        with DIRECT.open(f"http://{self._url}/api/v1/{what}?{urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]
