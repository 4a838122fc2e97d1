"""Which limit holds for whom, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.accounts import Account
from sidecar.admission.balances import Balances, Key, limits_of
from sidecar.admission.buckets import MICRO, Bucket
from sidecar.admission.decide import Applicant, decide
from sidecar.admission.entries import Admitted, Refused, ReservationRequest
from sidecar.admission.limits import ANY, NONE, Limits, applied
from sidecar.admission.periods import Period, end_of, period_of, written
from sidecar.admission.standing import Standing, duration

DAY = 86_400 * 1_000_000


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({}, 1),
        ({(ANY, "m"): 2}, 2),
        ({(ANY, "m"): 2, ("o", ANY): 3}, 3),
        ({(ANY, "m"): 2, ("o", ANY): 3, ("o", "m"): 4}, 4),
        ({(ANY, ANY): 5}, 5),
        ({("p", ANY): 6, ("o", "n"): 7}, 1),
        ({("o", "m"): 0}, 0),
    ],
)
def test_the_more_particular_limit_holds(rows: dict[tuple[str, str], int], expected: int) -> None:
    limits = {key: Limits(tokens_per_minute=limit) for key, limit in rows.items()}
    assert applied(limits, Limits(tokens_per_minute=1), "o", "m").rates.tokens_per_minute == expected


def test_each_limit_is_inherited_by_itself_and_a_quota_as_a_whole() -> None:
    rows = {
        ("o", "m"): Limits(requests_per_minute=1, period="day"),
        ("o", ANY): Limits(requests_per_minute=2, tokens_per_minute=3, period="month", period_tokens=4),
    }
    rates = applied(rows, Limits(image_bytes_per_minute=5, concurrent_requests=6), "o", "m").rates
    assert rates == Limits(1, 3, 5, 6, "month", 4)


def test_concurrency_and_quotas_count_all_models_and_each_that_is_named() -> None:
    rows = {
        ("o", ANY): Limits(concurrent_requests=9, period="month", period_tokens=90),
        (ANY, "m"): Limits(concurrent_requests=2, period="day", period_tokens=20),
    }
    limits = limits_of("o", "m", applied(rows, NONE, "o", "m"), 0)
    assert [(limit.key, limit.limit) for limit in limits] == [
        (Key("o", ANY, "concurrent"), 9),
        (Key("o", "m", "concurrent"), 2),
        (Key("o", ANY, "quota", "1970-01"), 90),
        (Key("o", "m", "quota", "1970-01-01"), 20),
    ]


@pytest.mark.parametrize(
    ("period", "moment", "name", "end"),
    [
        ("day", "2026-11-30T23:59:59", "2026-11-30", "2026-12-01T00:00:00Z"),
        ("month", "2026-11-30T23:59:59", "2026-11", "2026-12-01T00:00:00Z"),
        ("month", "2026-12-01T00:00:00", "2026-12", "2027-01-01T00:00:00Z"),
        ("month", "2028-01-31T12:00:00", "2028-01", "2028-02-01T00:00:00Z"),
        ("day", "2028-02-28T12:00:00", "2028-02-28", "2028-02-29T00:00:00Z"),
    ],
)
def test_periods_are_those_of_utc(period: Period, moment: str, name: str, end: str) -> None:
    now = int(datetime.fromisoformat(f"{moment}+00:00").timestamp()) * 1_000_000 + 999_999
    assert period_of(period, now) == name
    assert written(end_of(period, now)) == end


@given(st.sampled_from(["day", "month"]), st.integers(0, 2**52))
def test_a_period_ends_where_the_next_begins(period: Period, now: int) -> None:
    end = end_of(period, now)
    assert now < end <= now + 31 * DAY
    assert period_of(period, end - 1) == period_of(period, now) != period_of(period, end)


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [
        (0, "0ms"),
        (1, "1ms"),
        (12_000, "12ms"),
        (999_999, "1s"),
        (1_500_000, "1.5s"),
        (59_999_001, "1m0s"),
        (360_000_000, "6m0s"),
        (3_661_000_000, "1h1m1s"),
    ],
)
def test_durations_are_written_as_openai_does(microseconds: int, words: str) -> None:
    assert duration(microseconds) == words


def test_headers_tell_of_the_limits_that_exist() -> None:
    requests, tokens = Bucket(60, 58 * MICRO + 1, 0), Bucket(1000, -5 * MICRO, 0)
    assert Standing().headers() == {}
    assert Standing(requests, tokens).headers() == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "58",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m1s",
    }


REQUEST = ReservationRequest("r", "q", "o", "b3os/qwen3.5-9b", "n", "w", input_tokens=10, output_tokens=90)


class Desk:
    """Decides by ``limits``, on balances of which nothing has been taken."""

    def __init__(self, **limits: Any) -> None:
        model = REQUEST.model
        self.limits = tuple(limits_of("o", model, applied({}, Limits(**limits), "o", model), DAY))
        self.balances = Balances({limit.key: limit.start(DAY) for limit in self.limits}, DAY)

    def ask(self, price: int = 0, account: Account | None = None, **changes: Any) -> Admitted | Refused:
        return decide(Applicant(replace(REQUEST, **changes), self.limits, price, account), self.balances)

    def refused(self, **changes: Any) -> Refused:
        outcome = self.ask(**changes)
        assert isinstance(outcome, Refused)
        return outcome


def test_tokens_per_minute() -> None:
    desk = Desk(tokens_per_minute=200_000)
    assert isinstance(desk.ask(output_tokens=199_000), Admitted)
    refused = desk.refused(output_tokens=30_990)
    assert refused.code == "rate_limited"
    assert refused.message == "200000 tokens per minute allowed on b3os/qwen3.5-9b; retry in 10 seconds"
    assert refused.retry_after_us == 9_003_000


@pytest.mark.parametrize(
    "limits",
    [
        {"requests_per_minute": 1},
        {"tokens_per_minute": 1},
        {"concurrent_requests": 0},
        {"period": "day", "period_tokens": 1},
    ],
)
def test_a_model_is_called_what_its_client_knows_it_as(limits: dict[str, Any]) -> None:
    desk = Desk(**limits)
    desk.ask()
    message = desk.refused(told_model="qwen/qwen3.5").message
    assert REQUEST.model not in message
    assert ("on qwen/qwen3.5" in message) == ("per minute" in message)


def test_a_second_is_a_second() -> None:
    desk = Desk(requests_per_minute=60)
    for _ in range(60):
        assert isinstance(desk.ask(), Admitted)
    assert desk.refused().message.endswith("; retry in 1 second")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"concurrent_requests": 1}, "1 request at a time allowed; retry when it has ended"),
        ({"concurrent_requests": 0}, "0 requests at a time allowed"),
        ({"requests_per_minute": 1}, "1 request per minute allowed on b3os/qwen3.5-9b; retry in 60 seconds"),
        ({"tokens_per_minute": 1}, "1 token per minute allowed on b3os/qwen3.5-9b, fewer than the 100 that"),
        ({"period": "day", "period_tokens": 101}, "101 tokens per day allowed, of which 1 is left and this request"),
    ],
)
def test_one_is_one(limits: dict[str, Any], words: str) -> None:
    desk = Desk(**limits)
    desk.ask()
    assert desk.refused().message.startswith(words)


def test_of_several_reasons_the_one_that_lasts_is_told() -> None:
    desk = Desk(requests_per_minute=2, tokens_per_minute=100, concurrent_requests=1, period="day", period_tokens=150)
    assert isinstance(desk.ask(), Admitted)
    assert desk.refused(input_tokens=0, output_tokens=1).code == "concurrency_limited"
    assert desk.refused(output_tokens=40).code == "rate_limited"
    quota = desk.refused()
    assert (quota.code, quota.retry_after_us) == ("quota_exceeded", None)
    assert quota.message == (
        "150 tokens per day allowed, of which 50 are left and this request needs 100; "
        "the day ends at 1970-01-03T00:00:00Z"
    )
    never = desk.refused(output_tokens=91)
    assert (never.code, never.retry_after_us) == ("rate_limited", None)


def test_a_limit_of_nothing_is_never_to_be_retried() -> None:
    assert Desk(concurrent_requests=0).refused().retry_after_us is None
    assert Desk(requests_per_minute=0).refused().retry_after_us is None
    assert Desk(image_bytes_per_minute=0).refused(image_bytes=5).retry_after_us is None
    assert isinstance(Desk(image_bytes_per_minute=0).ask(), Admitted)


def test_image_bytes_are_lent_as_far_as_there_are_some() -> None:
    desk = Desk(image_bytes_per_minute=100)
    first, second = desk.ask(image_bytes=70), desk.ask(image_bytes=70)
    assert isinstance(first, Admitted)
    assert isinstance(second, Admitted)
    assert (first.image_bytes, second.image_bytes, second.image_limit) == (70, 30, 100)
    assert desk.refused(image_bytes=70).message == (
        "100 bytes of remote images per minute allowed on b3os/qwen3.5-9b; retry in 1 second"
    )


def test_credits_are_held_as_far_as_they_go() -> None:
    desk, account = Desk(), Account(balance=100, held=0)
    assert isinstance(desk.ask(price=60, account=account), Admitted)
    refused = desk.ask(price=41, account=account)
    assert isinstance(refused, Refused)
    assert refused.code == "credits_exhausted"
    assert isinstance(desk.ask(price=40, account=account), Admitted)
    assert account == Account(balance=100, held=100)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "requests_per_minute": st.integers(0, 5),
            "tokens_per_minute": st.integers(0, 500),
            "concurrent_requests": st.integers(0, 5),
        },
    ),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_what_is_admitted_fits_and_what_is_refused_takes_nothing(limits: dict[str, int], asked: list[int]) -> None:
    desk, admitted = Desk(**limits), list[int]()
    for tokens in asked:
        before = desk.balances.changed()
        if isinstance(desk.ask(input_tokens=tokens, output_tokens=0), Admitted):
            admitted.append(tokens)
        else:
            assert desk.balances.changed() == before
    assert len(admitted) <= min(limits.get("requests_per_minute", 99), limits.get("concurrent_requests", 99))
    assert sum(admitted) <= limits.get("tokens_per_minute", 10**9)
