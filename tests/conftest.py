"""The real parts for the tests: each fixture starts what its name says, once, on ports and sockets of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from sidecar.envoy.settings import Wire
from stack.local import SCRIPTED, SCRIPTED_BY_CONTRACT, SMOLLM2, THINKING, LocalStack
from stack.paths import TOKENIZER, TRITON_VENV
from stack.postgres import Postgres
from stack.triton import Triton
from stack.triton import start as start_triton
from stack.upstreams import (
    NATIVE_FAILOVER,
    NATIVE_REROUTED,
    NATIVE_SCRIPTED,
    NATIVE_SMOLLM2,
    Gone,
    LlamaServer,
    ScriptedUpstream,
)

# Time is measured in bench/, not asserted in tests.
settings.register_profile("untimed", deadline=None, max_examples=60)
settings.load_profile("untimed")

_TESTS = Path(__file__).parent
# A test's mark is the folder it stands in.
_MARKS = {
    "core": "core",
    "fuzz": "core",
    "contracts": "contract",
    "egress": "egress",
    "store": "store",
    "hostile": "hostile",
    "e2e": "e2e",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder, so that ``-m core`` leaves none out."""
    for item in items:
        item.add_marker(_MARKS[item.path.relative_to(_TESTS).parts[0]])


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    """A Triton with the CPU model, and the scripted model behind every contract. Tests must leave it running."""
    run_dir = tmp_path_factory.mktemp("triton")
    server = start_triton(
        TRITON_VENV,
        run_dir,
        [model.triton_model for model in (SMOLLM2, *SCRIPTED_BY_CONTRACT.values())],
        log=run_dir / "triton.log",
        tokenizer=TOKENIZER,
        event_log=run_dir / "events.log",
    )
    yield server
    server.stop()


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedUpstream]:
    """The scripted upstream that speaks the Responses API. Tests must leave it running."""
    upstream = ScriptedUpstream(tmp_path_factory.mktemp("upstream"))
    yield upstream
    upstream.process.stop()


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """llama.cpp's server, which speaks it too, with the CPU model. Tests must leave it running."""
    server = LlamaServer(TRITON_VENV, tmp_path_factory.mktemp("llama"))
    yield server
    server.process.stop()


@pytest.fixture(scope="session")
def stack(
    upstream: ScriptedUpstream, llama: LlamaServer, triton: Triton, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStack]:
    """Sidecar and Envoy on the tunnel wire, in front of all of these. Tests must leave all parts running."""
    with LocalStack(
        tmp_path_factory.mktemp("stack"),
        models=[SMOLLM2, *SCRIPTED_BY_CONTRACT.values(), THINKING],
        native_models=[NATIVE_SCRIPTED, NATIVE_FAILOVER, NATIVE_REROUTED, NATIVE_SMOLLM2],
        upstreams=[upstream, llama, Gone()],
        triton_address=f"127.0.0.1:{triton.grpc_port}",
        # One of the models is given a second between its tokens; clients of a busy machine pause for longer.
        envoy_settings={"client_stall_timeout": 30},
    ) as stack:
        yield stack


@pytest.fixture(scope="session")
def direct_stack(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Sidecar and Envoy on the direct wire, in front of ``triton``. Tests must leave all parts running."""
    with _small_stack("direct", triton, tmp_path_factory) as stack:
        yield stack


@pytest.fixture(scope="session")
def origin_stack(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Sidecar and Envoy on the origin wire, in front of ``triton``. Tests must leave all parts running."""
    with _small_stack("origin", triton, tmp_path_factory) as stack:
        yield stack


def _small_stack(wire: Wire, triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> LocalStack:
    address = f"127.0.0.1:{triton.grpc_port}"
    run_dir = tmp_path_factory.mktemp(wire)
    return LocalStack(run_dir, models=[SMOLLM2, SCRIPTED], triton_address=address, wire=wire, workers=1)


@pytest.fixture
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with the scripted model and a Triton of its own, for one test that may break its parts."""
    model = replace(SCRIPTED, settings={"token_timeout": 10.0})  # for who waits for a model that has died
    with LocalStack(tmp_path_factory.mktemp("own"), models=[model]) as stack:
        yield stack


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL server. Tests must leave it running, and keep to databases of their own."""
    server = Postgres(tmp_path_factory.mktemp("postgres") / "postgres.log", sync=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """The name of a database with this release's schema and nothing in it, to make copies of."""
    from sidecar.store.migrate import migrate

    name = postgres.create_database()
    migrate(postgres.url(name))
    return name


@pytest.fixture
def postgres_url(postgres: Postgres, migrated: str) -> Iterator[str]:
    """A store of this test alone, on PostgreSQL."""
    name = postgres.create_database(migrated)
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A store of this test alone, on SQLite."""
    from sidecar.store.migrate import migrate

    url = f"sqlite:///{tmp_path}/store/ledger.db"
    migrate(url)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A store of this test alone, once on each engine."""
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(fixture))
