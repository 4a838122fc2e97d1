"""How many processors this process may use, and how a node shares them out.

In a container that is not what the machine has: the scheduler's affinity and the control group's quota count as well.

Source: sched_getaffinity(2); the kernel's documentation of ``cpu.max`` (cgroup v2) and ``cpu.cfs_quota_us`` (v1).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Shares(NamedTuple):
    """Threads of Envoy and worker processes of the sidecar, which together are as many as the processors."""

    envoy_threads: int
    workers: int


def shares(processors: int) -> Shares:
    """Half for Envoy and half for workers, which get the odd one; on a single processor one of each.

    More of either only take turns on the same processors, and every turn starts with cold caches.
    """
    envoy_threads = max(1, processors // 2)
    return Shares(envoy_threads, max(1, processors - envoy_threads))


def usable_processors(root: Path = Path("/")) -> int:
    """The processors that this process may use: at least 1. ``root`` is where ``proc`` and ``sys`` are."""
    return max(1, int(min([len(os.sched_getaffinity(0)), *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of the control groups that this process is in, in processors."""
    groups = _read(root / "proc/self/cgroup").splitlines()
    for _, controllers, path in (group.split(":", 2) for group in groups):
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        group = mount / path.lstrip("/")
        # A group has no more than those that it is in. Seen from a container, some of them are not there.
        while group.is_relative_to(mount):
            quota, period = _quota(group)
            if quota.isdecimal() and period.isdecimal():
                yield int(quota) / int(period)
            group = group.parent


def _quota(group: Path) -> tuple[str, str]:
    """Microseconds of processor time, or what stands for no limit, and the period in which they may be used."""
    if limit := _read(group / "cpu.max").split():
        return limit[0], limit[1]
    return _read(group / "cpu.cfs_quota_us").strip(), _read(group / "cpu.cfs_period_us").strip()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
