"""How sums of usage are shown: a table for people, CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import typer

from sidecar.admission.bill import COUNTS
from sidecar.admission.money import decimal
from sidecar.admission.usage import Sums, columns_of
from sidecar.cli.listing import print_table

# Of a model without prices: what it costs is nothing in no currency.
_NO_PRICE = "-"


def show_usage(
    groups: Sequence[str], rows: Iterable[Sums], whole: Iterable[Sums] | None = None, *, as_csv: bool, as_json: bool
) -> None:
    """Print ``rows``. As CSV and as JSON each is printed as it comes, however many there are.

    ``whole`` are the sums of all, where the rows do not add up to them.
    """
    if as_csv:
        _print_csv(groups, rows)
    elif as_json:
        _print_json(rows)
    else:
        _print_table(groups, rows, whole)


def _print_csv(groups: Sequence[str], rows: Iterable[Sums]) -> None:
    writer = csv.DictWriter(sys.stdout, [*columns_of(groups), "requests", *COUNTS, "price", "currency"])
    writer.writeheader()
    for row in rows:
        writer.writerow(_flat(row))


def _print_json(rows: Iterable[Sums]) -> None:
    """One document, though not all of it at once."""
    separator = "["
    for row in rows:
        typer.echo(f"{separator}\n  {json.dumps(_flat(row), ensure_ascii=False)}", nl=False)
        separator = ","
    typer.echo("[]" if separator == "[" else "\n]")


def _flat(row: Sums) -> dict[str, str | int | None]:
    """Money as a decimal in text: as a number it would become a binary fraction."""
    return {
        **row.group,
        "requests": row.requests,
        **row.counts,
        "price": decimal(row.price),
        "currency": row.currency,
    }


def _print_table(groups: Sequence[str], rows: Iterable[Sums], whole: Iterable[Sums] | None) -> None:
    """People know organizations by their names; one that is only an id is shown by it."""
    columns = [name for name in columns_of(groups) if name != "organization_name"]
    totals, prices = Counter[str](), Counter[str]()
    lines = []
    for row in rows:
        lines.append(_line(columns, row))
        if whole is None:
            _add(row, totals, prices)
    for row in whole or ():
        _add(row, totals, prices)
    if lines:
        total = ["Total", *[""] * (len(columns) - 1), *_amounts(totals)]
        money = [_money(price, currency) for currency, price in prices.items()] or [_NO_PRICE]
        # Of several currencies only the prices differ.
        lines += [[*total, money[0]], *([*[""] * len(total), price] for price in money[1:])]
    heads = [name.replace("_", " ").capitalize() for name in (*columns, "requests", *COUNTS, "price")]
    print_table(heads, lines)


def _line(columns: Sequence[str], row: Sums) -> list[str]:
    group = {**row.group, "organization": row.group.get("organization_name") or row.group.get("organization", "")}
    return [*(group[name] for name in columns), *_amounts(_counts(row)), _money(row.price, row.currency)]


def _add(row: Sums, totals: Counter[str], prices: Counter[str]) -> None:
    totals.update(_counts(row))
    if row.currency is not None:
        prices[row.currency] += row.price


def _counts(row: Sums) -> Counter[str]:
    return Counter({"requests": row.requests, **row.counts})


def _amounts(counts: Counter[str]) -> list[str]:
    return [f"{counts[name]:,}" for name in ("requests", *COUNTS)]


def _money(price: int, currency: str | None) -> str:
    return _NO_PRICE if currency is None else f"{decimal(price)} {currency}"
