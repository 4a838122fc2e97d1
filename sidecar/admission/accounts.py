"""The credits of prepaid organizations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from sidecar.admission import statements


@dataclass(slots=True)
class Account:
    """In nano-units: the ``balance`` that is left, and what of it is ``held`` for requests under way."""

    balance: int
    held: int


class Accounts:
    """The accounts of ``organizations``, locked for one transaction."""

    def __init__(self, connection: Connection, organizations: Iterable[str]) -> None:
        self._connection = connection
        asked = [{"organization_id": name} for name in sorted(organizations)]
        rows = statements.LOCK_ACCOUNTS.run(connection, asked)
        self._before = {row.organization_id: (row.balance, row.held) for row in rows}
        self._accounts = {name: Account(*amounts) for name, amounts in self._before.items()}

    def of(self, organization: str) -> Account:
        """The account of ``organization``; without credits where it has none."""
        return self._accounts.get(organization) or Account(0, 0)

    def charge(self, organization: str, price: int, *, held: int) -> None:
        """Take ``price``, of which ``held`` had been held; nothing where there is no account."""
        account = self._accounts.get(organization)
        if account is not None:
            account.balance -= price
            account.held -= held

    def write(self) -> None:
        """Write what has changed."""
        statements.SET_ACCOUNTS.run(
            self._connection,
            [
                {"organization_id": name, "balance": account.balance, "held": account.held}
                for name, account in self._accounts.items()
                if (account.balance, account.held) != self._before[name]
            ],
        )
