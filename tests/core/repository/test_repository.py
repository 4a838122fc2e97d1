"""The repository speaks of itself alone: packages are named, never the servers that they come from."""

from __future__ import annotations

import subprocess

import pytest

from stack.paths import ROOT

# In two halves, so that this file does not name them either.
HOSTS = [
    ".".join(halves)
    for halves in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs"),
        ("npmjs", "com"),
        ("deb", "debian"),
        ("debian", "org"),
        ("nodesource", "com"),
        ("crates", "io"),
        ("proxy", "golang"),
    ]
]

LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    *(f"tests/e2e/python/{name}.lock" for name in ["clients", "schemathesis"]),
    *(f"bench/locks/{name}.lock" for name in ["codex-relay", "py-spy", "smg"]),
]


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return listed.stdout.decode().split("\0")[:-1]


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{name}: {host}"
        for name in tracked_files()
        for host in HOSTS
        if (ROOT / name).is_file() and host.encode() in (ROOT / name).read_bytes()
    ]
    assert not found


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_package_by_hash(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert packages
    assert all("==" in line and line.endswith("\\") for line in packages)
