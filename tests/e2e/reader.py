"""Somebody who follows a page of the documents: runs its marked blocks as they stand, one after the other."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from stack.process import Process

# What is run and ends, and what is started and stays.
_MARKED = re.compile(r"^<!-- (run|start) -->\n```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INTERPRETERS = {"console": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
_KEY = re.compile(r"b3os_sk_\w+")
SHOWN_KEY = "b3os_sk_…"


class Reader:
    """Follows a page in the directory ``place``; as a context manager, which ends what was started.

    ``programs`` are directories of the ``PATH``, ``meant`` has what the reader puts in place of what is shown. A key
    that a command prints is used from then on.
    """

    def __init__(self, place: Path, programs: list[Path], meant: Mapping[str, str]) -> None:
        self.outputs: list[str] = []
        """What each block that was run has printed."""
        self._place = place
        self._path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        self._meant = dict(meant)
        self._started: list[Process] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_exception: object) -> None:
        for process in self._started:
            process.stop()

    def follow(self, text: str) -> None:
        """Do what ``text`` marks to be done; raises :class:`AssertionError` where a block fails or says nothing."""
        for what, language, shown in _MARKED.findall(text):
            block = shown
            for word, value in self._meant.items():
                block = block.replace(word, value)
            if what == "start":
                self._start(block)
            else:
                self._run(language, block)

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until ``ready`` holds; raises :class:`StackError` where what was started last ends before."""
        self._started[-1].wait_until(ready, seconds)

    @property
    def key(self) -> str:
        """The key that is used."""
        return self._meant[SHOWN_KEY]

    def _run(self, language: str, block: str) -> None:
        done = subprocess.run(
            [*_INTERPRETERS[language], block],
            cwd=self._place,
            env={**os.environ, "PATH": self._path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"{block} says nothing"
        assert not re.search(r'"error": ?{', done.stdout), done.stdout
        self.outputs.append(done.stdout)
        if (made := _KEY.search(done.stdout)) is not None:
            self._meant[SHOWN_KEY] = made[0]

    def _start(self, block: str) -> None:
        program = shlex.split(block)[0]
        # By a shell, which finds the program on the PATH, and which the program takes the place of.
        argv, env = ["sh", "-c", f"exec {block}"], {"PATH": self._path}
        self._started.append(Process(program, argv, self._place / f"{program}.log", env=env, directory=self._place))
