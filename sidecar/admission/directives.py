"""Directives: what a team lets its own requests be, set for all of it, for a project or for an environment.

Each member is inherited by itself: of the levels that a request is below, the narrowest that says something decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import reduce

from sidecar.admission.balances import OF_USERS, Key, Limit
from sidecar.admission.limits import ANY
from sidecar.config.directives import DirectiveConfig
from sidecar.responses.level import ALL, Level, Placed


@dataclass(frozen=True, slots=True)
class Directives:
    """What is set at one level, or holds for one request; ``None`` is not set.

    ``max_output_tokens`` lowers what a request asks for, ``max_input_tokens`` is how long its prompt may be. With
    ``no_training`` a request goes to nobody who may train on it. Of ``excluded_vendors`` nobody gets it.
    ``user_requests_per_minute`` and ``user_tokens_per_minute`` are what each end user of an environment may have.

    ``retains_nothing`` is whether zero data retention is required, which :mod:`sidecar.stored.zero_retention` keeps:
    it holds for all below its level, and is known here for a request alone.
    """

    max_output_tokens: int | None = None
    max_input_tokens: int | None = None
    no_training: bool | None = None
    excluded_vendors: tuple[str, ...] | None = None
    user_requests_per_minute: int | None = None
    user_tokens_per_minute: int | None = None
    retains_nothing: bool = False

    def over(self, below: Directives) -> Directives:
        """These, and what ``below`` says where these are silent."""
        values = ((getattr(self, name), getattr(below, name)) for name in MEMBERS)
        return Directives(*(theirs if ours is None else ours for ours, theirs in values))

    def excludes(self, vendor: str) -> bool:
        """Whether ``vendor`` gets nothing."""
        return vendor in (self.excluded_vendors or ())


MEMBERS = tuple(field.name for field in fields(Directives) if field.name != "retains_nothing")
"""The names of the members that are inherited."""

NONE = Directives()
"""Where nothing is set."""


def configured(settings: Iterable[DirectiveConfig]) -> list[tuple[Level, Directives]]:
    """The directives of the configuration, by level."""
    return [
        (
            Level(one.team or ALL, one.project or ALL, one.environment or ALL),
            Directives(**one.model_dump(exclude={"team", "project", "environment"})),
        )
        for one in settings
    ]


def applied(levels: Iterable[tuple[Level, Directives]], placed: Placed) -> Directives:
    """What holds for ``placed``. Of two at the same level the one that comes first is asked first."""
    covering = [(level, directives) for level, directives in levels if level.covers(placed)]
    ordered = sorted(covering, key=lambda one: one[0].narrowness, reverse=True)
    return reduce(lambda above, one: above.over(one[1]), ordered, NONE)


def limits_of_user(
    placed: Placed, end_user: str | None, requests_per_minute: int | None, tokens_per_minute: int | None
) -> Iterator[Limit]:
    """The limits of one end user of an environment, over all models.

    The balances that they are kept in are named by the limit too: a settlement knows the limit by that alone, and who
    is given another begins with a full bucket. Of the user's name they hold a digest.
    """
    if end_user is None:
        return
    named = "\0".join((placed.project, placed.environment, end_user))
    digest = hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()[:32]
    for kind, limit in zip(OF_USERS, (requests_per_minute, tokens_per_minute), strict=True):
        if limit is not None:
            yield Limit(Key(placed.organization, ANY, kind, f"{digest}/{limit}"), limit)
