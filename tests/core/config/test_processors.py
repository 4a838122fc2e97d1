"""The processors that a process may use, as the kernel tells of them, and how they are shared out."""

import os
from pathlib import Path

import pytest

from sidecar.config.processors import shares, usable_processors

AFFINITY = len(os.sched_getaffinity(0))


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A ``/proc`` and a ``/sys`` in which this process is in ``groups``."""
    for name, content in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "processors"),
    [
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "max 100000\n"}, AFFINITY),
        ("0::/a/b\n", {"sys/fs/cgroup/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 1),
        # A container sees its own group at the top, whatever the machine calls it.
        ("0::/kubepods/pod1\n", {"sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        (
            "4:cpu,cpuacct:/docker/1\n3:cpuset:/\n0::/\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            1,
        ),
        (
            "4:cpu:/\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            AFFINITY,
        ),
        ("", {}, AFFINITY),
    ],
)
def test_a_quota_counts_where_it_is_smaller(
    tmp_path: Path, groups: str, files: dict[str, str], processors: int
) -> None:
    assert usable_processors(machine(tmp_path, groups, files)) == processors


def test_an_affinity_counts() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_together_they_are_as_many_as_the_processors() -> None:
    assert [tuple(shares(processors)) for processors in (1, 2, 3, 4, 8)] == [(1, 1), (1, 1), (1, 2), (2, 2), (4, 4)]
