"""How receipts are shown: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sidecar.cli.listing import print_json, print_table

_NONE = "-"


def show_log(listed: Mapping[str, Any], *, as_json: bool) -> None:
    """A page of the log."""
    if as_json:
        print_json(listed)
        return
    columns = ("Request", "Started", "Organization", "Project", "Model", "Outcome", "Input", "Output", "Charge", "ms")
    print_table(columns, ([_text(value) for value in _row(receipt)] for receipt in listed["data"]))


def show_receipt(receipt: Mapping[str, Any], *, as_json: bool) -> None:
    """One receipt, a member a line; what is not known is left out."""
    if as_json:
        print_json(receipt)
    else:
        print_table(("", ""), _lines(receipt))


def _row(receipt: Mapping[str, Any]) -> tuple[Any, ...]:
    usage, timings = receipt["usage"] or {}, receipt["timings"]
    place = "/".join(name for name in (receipt["project"], receipt["environment"]) if name)
    return (
        *(receipt["id"], timings["started_at"], receipt["organization"], place or None),
        *(receipt["model"], receipt["outcome"], usage.get("input_tokens"), usage.get("output_tokens")),
        *(_charge(receipt), timings["total_ms"]),
    )


def _charge(receipt: Mapping[str, Any]) -> str | None:
    """With its currency, where it had a price."""
    price = receipt["price"]
    return f"{receipt['charge']} {price['currency']}" if price is not None else None


def _lines(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, member in value.items():
        if isinstance(member, Mapping):
            yield from _lines(member, f"{prefix}{name}.")
        elif name == "attempts":
            yield from ((f"attempt {number}", _words(one)) for number, one in enumerate(member, 1))
        elif member not in (None, [], "request"):
            yield f"{prefix}{name}", ", ".join(member) if isinstance(member, list) else str(member)


def _words(attempt: Mapping[str, Any]) -> str:
    status = f" ({attempt['status']})" if attempt["status"] is not None else ""
    return f"{attempt['route']}: {attempt['outcome']}{status}"


def _text(value: Any) -> str:
    return _NONE if value is None else str(value)
