"""Exchanges whose model is one of native upstreams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sidecar.config.model import CatalogEntry
from sidecar.config.upstreams import NativeModelConfig, RouteConfig, UpstreamConfig
from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.catalog import Route, ServedNative
from sidecar.exchange.commands import CallUpstream, Command
from sidecar.exchange.events import Answered, RequestComplete, UpstreamEnd, UpstreamHead
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.surfaces import SURFACES
from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.surface import Surface
from tests.core import kit

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}
KEY = "Bearer sk-secret"
ALL = frozenset({"text.format", "images", "tools", "web_search", "compaction"})


def model(*features: Iterable[str], **changes: Any) -> ServedNative:
    """A model with a route for each set of ``features``, to the upstreams ``up0``, ``up1`` and so on."""
    certified = [frozenset(one) for one in features or (ALL, ALL)]
    settings = NativeModelConfig(
        name="gpt",
        context_length=1000,
        catalog=CatalogEntry(slug="openai/gpt"),
        routes=tuple(RouteConfig(upstream=f"up{at}", model=f"gpt-at-{at}") for at in range(len(certified))),
        **{"first_token_timeout": 10.0, "token_timeout": 5.0, **changes},
    )
    routes = [
        Route(UpstreamConfig(name=f"up{at}", url=f"https://host{at}/base/v1"), f"gpt-at-{at}", one, KEY)
        for at, one in enumerate(certified)
    ]
    return ServedNative(settings, tuple(routes))


def exchange(
    served: ServedNative | None = None,
    surface: Surface = BUREAU,
    asks: Sequence[type[Ask[Any]] | type[LastAsk]] = (Prepare,),
) -> Exchange:
    return Exchange(surface, kit.catalog(kit.model(), served or model()), asks, entropy=bytes(range(18)))


def request(surface: Surface = BUREAU, headers: Json | None = None, **body: Any) -> RequestComplete:
    name = "openai/gpt" if surface.native else "gpt"
    whole = kit.request(**{"model": name, **body})
    path = "/v1/responses" if surface.native else "/v1/infer/responses"
    return replace(whole, headers={**whole.headers, ":path": path, **(headers or {})})


def begin(of: Exchange, event: RequestComplete) -> list[Command]:
    """What is to be done about a request that has been looked at."""
    (ask,) = of.handle(event)
    assert isinstance(ask, Prepare)
    result: object
    try:
        result = ask.plan()
    except ApiError as error:
        result = error
    return of.handle(Answered(ask, result, event.at))


def call(of: Exchange, **body: Any) -> CallUpstream:
    (command,) = begin(of, request(**body))
    assert isinstance(command, CallUpstream), command
    return command


def refused(surface: Surface = BUREAU, served: ServedNative | None = None, **body: Any) -> Json:
    """The error of a request that is not accepted."""
    commands = begin(exchange(served, surface), request(surface, **body))
    error: Json = json.loads(kit.reply(commands).body)["error"]
    return error


def head(of: Exchange, headers: dict[str, str], status: int = 200, at: float = 100.5) -> list[Command]:
    return of.handle(UpstreamHead(status, headers, at))


def answers(of: Exchange, headers: dict[str, str], body: bytes, status: int = 200) -> list[Command]:
    """A whole answer of the upstream."""
    commands = head(of, headers, status)
    commands += kit.upstream(of, body)
    return commands + of.handle(end(status))


def end(status: int | None = 200, *, whole: bool = True, at: float = 102.0) -> UpstreamEnd:
    return UpstreamEnd(whole, status, None, at)


NODE = SURFACES["node"]
