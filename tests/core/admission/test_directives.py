"""Of the levels that a request is below, the narrowest that says something decides, for each directive by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.balances import Key
from sidecar.admission.directives import MEMBERS, NONE, Directives, applied, configured, limits_of_user
from sidecar.config.directives import DirectiveConfig
from sidecar.responses.caller import Caller
from sidecar.responses.level import ALL, Level

CALLER = Caller("org_a", "prk_1", "", "support", "production")
LEVELS = [
    Level("org_a", "support", "production"),
    Level("org_a", "support"),
    Level("org_a"),
    Level(ALL),
]
ELSEWHERE = [Level("org_b"), Level("org_a", "other"), Level("org_a", "support", "test")]

values = st.builds(
    Directives,
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.none() | st.booleans(),
    st.none() | st.just(()) | st.just(("openai",)),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
)


@given(st.permutations(range(4)), st.lists(values, min_size=4, max_size=4), st.lists(values, min_size=3, max_size=3))
def test_the_narrowest_that_says_something_decides(
    order: list[int], here: list[Directives], elsewhere: list[Directives]
) -> None:
    given_levels = [(LEVELS[at], here[at]) for at in order] + list(zip(ELSEWHERE, elsewhere, strict=True))
    found = applied(given_levels, CALLER)
    for name in MEMBERS:
        said = [getattr(one, name) for one in here if getattr(one, name) is not None]
        assert getattr(found, name) == (said[0] if said else None)


def test_of_two_at_the_same_level_the_first_is_asked_first() -> None:
    one, other = Directives(max_output_tokens=1), Directives(max_output_tokens=2, max_input_tokens=3)
    assert applied([(LEVELS[2], one), (LEVELS[2], other)], CALLER) == Directives(1, 3)


def test_nothing_is_set_where_nothing_is_said() -> None:
    assert applied([], CALLER) == NONE
    assert not NONE.excludes("openai")
    assert Directives(excluded_vendors=("openai",)).excludes("openai")


def test_the_configuration_s_levels_are_those_that_it_names() -> None:
    settings = [
        DirectiveConfig(max_input_tokens=5),
        DirectiveConfig(team="org_a", project="support", environment="production", excluded_vendors=("a", "b")),
    ]
    assert configured(settings) == [
        (Level(ALL), Directives(max_input_tokens=5)),
        (LEVELS[0], Directives(excluded_vendors=("a", "b"))),
    ]


@pytest.mark.parametrize(
    "place", [{"environment": "production"}, {"team": "org_a", "environment": "e"}, {"project": "p"}]
)
def test_a_level_needs_those_above_it(place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is needed"):
        DirectiveConfig(**place)


def test_an_end_user_is_one_of_an_environment_and_has_a_balance_for_each_limit() -> None:
    requests, tokens = limits_of_user(CALLER, "ada", 5, 1000)
    assert (requests.key.kind, requests.limit, tokens.key.kind, tokens.limit) == (
        "user_requests",
        5,
        "user_tokens",
        1000,
    )
    assert requests.key[:2] == ("org_a", ALL)
    assert "ada" not in requests.key.period
    assert (requests.key.own_limit, tokens.key.own_limit) == (5, 1000)
    assert Key("org_a", "m", "tokens").own_limit is None
    assert list(limits_of_user(CALLER, None, 5, 1000)) == []
    assert list(limits_of_user(CALLER, "ada", None, None)) == []
    others = [
        *limits_of_user(CALLER, "bob", 5, None),
        *limits_of_user(replace(CALLER, project="other"), "ada", 5, None),
        *limits_of_user(replace(CALLER, environment="test"), "ada", 5, None),
        *limits_of_user(CALLER, "ada", 6, None),
    ]
    assert len({requests.key, *(one.key for one in others)}) == 5
