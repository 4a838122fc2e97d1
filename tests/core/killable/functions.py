"""What the tests have processes do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def add(left: int, right: int) -> int:
    return left + right


def echo(data: bytes) -> bytes:
    return data


def pid() -> int:
    return os.getpid()


def spin() -> None:
    while True:
        pass


def hold(file: str) -> None:
    """Tell through ``file`` that the call is under way, and never return."""
    Path(file).touch()
    while True:
        time.sleep(60)


def hold_the_interpreter() -> int:
    """Minutes inside one instruction, as a decoder's are."""
    return len(str(7 ** (10**9)))


def allocate(count: int) -> int:
    return len(bytearray(count))


def die(number: int) -> None:
    os.kill(os.getpid(), number)


def leave() -> None:
    sys.exit(3)


class Refusal(Exception):
    pass


class Unpicklable(Exception):
    def __reduce__(self) -> str:
        raise TypeError("no")


def refuse(words: str) -> None:
    raise Refusal(words)


def refuse_oddly() -> None:
    raise Unpicklable("secret")


def unpicklable() -> object:
    return lambda: None


def read_and_print() -> str:
    print("printed")
    return sys.stdin.read()


def ignored() -> list[bool]:
    return [signal.getsignal(number) == signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM)]


def niceness() -> tuple[int, str]:
    """This process's, and what the system tells of its session's, if anything."""
    autogroup = Path("/proc/self/autogroup")
    return os.nice(0), autogroup.read_text().strip() if autogroup.exists() else ""


PREPARED: list[int] = []


def prepare() -> None:
    PREPARED.append(1)


def prepared() -> list[int]:
    return PREPARED


def fail_to_prepare() -> None:
    raise Refusal("not today")
