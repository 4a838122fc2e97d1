"""Kinds of work for the tests of the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from sidecar.store.tables import organizations


def row(name: str, created_at: int = 1) -> dict[str, Any]:
    return {"id": name, "name": name, "prepaid": False, "created_at": created_at}


class Insert:
    """Inserts organizations by name, and returns what each was."""

    def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[str]:
        connection.execute(organizations.insert(), [row(item) for item in items])
        return items


class Call:
    """Performs what its items do."""

    def perform(
        self, connection: Connection, items: Sequence[Callable[[Connection], object]]
    ) -> Sequence[object | Exception]:
        return [item(connection) for item in items]


class Gate:
    """An item for :class:`Call` that stays in its transaction until it is opened."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._opened = threading.Event()

    def __call__(self, connection: Connection) -> None:
        Insert().perform(connection, ["gate"])
        self._entered.set()
        assert self._opened.wait(60)

    async def entered(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, 60)

    def open(self) -> None:
        self._opened.set()


def names(connection: Connection) -> set[str]:
    return set(connection.execute(select(organizations.c.name)).scalars())


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(organizations)).scalar_one()


async def settle() -> None:
    """Let all tasks that have just been made begin to wait."""
    for _ in range(3):
        await asyncio.sleep(0)
