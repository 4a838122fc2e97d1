"""The table of all metrics: names, labels, buckets and meanings. ``docs/metrics.md`` is made from it.

Names and buckets follow OpenTelemetry's semantic conventions for generative AI where these have a metric, with buckets
beyond theirs where models are faster or answers longer. No label tells of an organization, a key, a user or a request,
and what a client sends becomes no label: models, routes and codes are those of the configuration and of our own tables.
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

COUNTER: Literal["counter"] = "counter"
GAUGE: Literal["gauge"] = "gauge"
HISTOGRAM: Literal["histogram"] = "histogram"

_GEN_AI = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
OPERATION = "chat"
"""What the conventions call an operation that makes a response."""

_STEP_SECONDS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    240.0,
)


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric: ``help`` is a line of plain text.

    ``buckets`` are the upper bounds of a histogram's. Of a gauge, ``across`` says what the workers' values come to
    together: their sum, or the least.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    across: Literal["sum", "min"] = "sum"


REQUESTS = Metric(
    "responses_requests_total",
    COUNTER,
    "Requests that are over. The code is that of docs/errors.md, empty without an error.",
    ("surface", "model", "outcome", "code"),
)
DURATION = Metric(
    "gen_ai_server_request_duration_seconds",
    HISTOGRAM,
    "From a request's head to the end of its answer, of those whose model was called.",
    (*_GEN_AI, "error_type"),
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36),
)
FIRST_TOKEN = Metric(
    "gen_ai_server_time_to_first_token_seconds",
    HISTOGRAM,
    "From a request's head to the first generated token.",
    _GEN_AI,
    (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
PER_TOKEN = Metric(
    "gen_ai_server_time_per_output_token_seconds",
    HISTOGRAM,
    "The mean of an answer's tokens after its first, taken at its end.",
    _GEN_AI,
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
)
TOKEN_USAGE = Metric(
    "gen_ai_client_token_usage",
    HISTOGRAM,
    "Tokens of a request, input and output.",
    (*_GEN_AI, "gen_ai_token_type"),
    (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576),
)
TOKENS = Metric(
    "responses_tokens_total",
    COUNTER,
    "Tokens. Cached ones are a part of input, reasoning ones of output.",
    ("model", "kind"),
)
STREAMS = Metric(
    "responses_streams_in_flight", GAUGE, "Answers whose head has been sent as an event stream and that go on."
)
UNDER_WAY = Metric("responses_requests_in_flight", GAUGE, "Requests under way, of any kind.")
HELD_HEAD = Metric(
    "responses_held_head_seconds",
    HISTOGRAM,
    "For how long an answer's head was held: from the call of the model to the first token.",
    ("model",),
    FIRST_TOKEN.buckets,
)
STEPS = Metric(
    "responses_step_duration_seconds",
    HISTOGRAM,
    "How long a step before or after the model took, its waiting included. Reserve is the admission.",
    ("step",),
    _STEP_SECONDS,
)
ADMISSIONS = Metric(
    "responses_admission_decisions_total",
    COUNTER,
    "Decisions of admission: admitted, or the code of the refusal.",
    ("model", "decision"),
)
ADMISSION_QUEUE = Metric("responses_admission_waiting", GAUGE, "Requests that wait for what their limits give back.")
PREPARATION_QUEUE = Metric(
    "responses_preparation_waiting",
    GAUGE,
    "Requests that wait to be prepared, by the size of their lane; the long prompts are in the largest.",
    ("lane",),
)
BROKEN_CHARACTERS = Metric("responses_broken_characters_total", COUNTER, "U+FFFD in the text of models.", ("model",))
FAULTY_OUTPUT = Metric(
    "responses_faulty_outputs_total",
    COUNTER,
    "What a model wrote in spite of what was asked: schema, missed_call, arguments; unchecked could not be checked.",
    ("model", "fault"),
)
REPAIRED_CALLS = Metric(
    "responses_repaired_calls_total",
    COUNTER,
    "Calls whose arguments a model wrote not quite right, and that were made valid JSON.",
    ("model",),
)
UPSTREAM_FAILURES = Metric(
    "responses_upstream_failures_total",
    COUNTER,
    "Failures of model runtimes and upstreams that ended an answer, by class.",
    ("model", "failure"),
)
ATTEMPTS = Metric(
    "responses_upstream_attempts_total",
    COUNTER,
    "Calls of models by route: triton or the upstream's name; the outcome is completed, incomplete or a code.",
    ("model", "route", "outcome"),
)
LOOP_LAG = Metric(
    "responses_event_loop_lag_seconds",
    HISTOGRAM,
    "How late a worker's event loop wakes.",
    (),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
TASKS = Metric("responses_event_loop_tasks", GAUGE, "Tasks of the workers' event loops.")
STORE = Metric(
    "responses_store_duration_seconds",
    HISTOGRAM,
    "How long the store took to answer, waiting for its turn included.",
    ("access", "outcome"),
    _STEP_SECONDS[:14],
)
STORE_UP = Metric("responses_store_up", GAUGE, "Whether the store answered last time; 0 or 1.", across="min")
RESERVATIONS = Metric("responses_reservations_open", GAUGE, "Reservations that are not settled.")
LOG_RECORDS = Metric(
    "responses_log_records_total",
    COUNTER,
    "Warnings and errors in the log, by part.",
    ("part", "level"),
)
EXT_PROC_ERRORS = Metric(
    "responses_ext_proc_errors_total",
    COUNTER,
    "Failures between Envoy and a worker: of the service, a route's settings, a call, a connection that is ended.",
    ("kind",),
)
MODEL_READY = Metric(
    "responses_model_ready",
    GAUGE,
    "Whether the model takes requests: how to speak to it is known, and it answers; 0 or 1.",
    ("model",),
    across="min",
)
WORKERS = Metric("responses_workers", GAUGE, "Workers that serve.")
WORKER_STARTS = Metric("responses_worker_starts_total", COUNTER, "Starts of workers since that of the supervisor.")
MEMORY = Metric("responses_resident_memory_bytes", GAUGE, "Resident memory of the workers, without their helpers'.")
CONFIG_LOADED = Metric(
    "responses_config_last_reload_successful",
    GAUGE,
    "Whether the configuration could be used that was to be loaded last; 0 or 1.",
)
CONFIG_LOADED_AT = Metric(
    "responses_config_last_reload_success_timestamp_seconds",
    GAUGE,
    "When the configuration in force was loaded, in seconds since 1970.",
)
OF_THE_SUPERVISOR = (CONFIG_LOADED, CONFIG_LOADED_AT)
"""The supervisor tells these, no worker."""

METRICS = (
    REQUESTS,
    DURATION,
    FIRST_TOKEN,
    PER_TOKEN,
    TOKEN_USAGE,
    TOKENS,
    STREAMS,
    UNDER_WAY,
    HELD_HEAD,
    STEPS,
    ADMISSIONS,
    ADMISSION_QUEUE,
    PREPARATION_QUEUE,
    BROKEN_CHARACTERS,
    FAULTY_OUTPUT,
    REPAIRED_CALLS,
    UPSTREAM_FAILURES,
    ATTEMPTS,
    LOOP_LAG,
    TASKS,
    STORE,
    STORE_UP,
    RESERVATIONS,
    LOG_RECORDS,
    EXT_PROC_ERRORS,
    MODEL_READY,
    WORKERS,
    WORKER_STARTS,
    MEMORY,
)
"""What the workers count."""
