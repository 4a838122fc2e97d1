"""What a leak would raise, of every part of a stack."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from stack import procfs
from stack.local import LocalStack
from stack.net import DIRECT
from tests.core.telemetry.scraped import Scraped
from tests.e2e.ledger import LocalLedger

_ENVOYS = (
    "http.ingress.downstream_rq_active",
    "http.egress.downstream_rq_active",
    "http.egress.downstream_cx_active",
    "cluster.triton.upstream_rq_active",
    "cluster.sidecar.upstream_rq_active",
    "cluster.egress_tunnel.upstream_cx_active",
)
_GAUGES = (
    "responses_requests_in_flight",
    "responses_streams_in_flight",
    "responses_reservations_open",
    "responses_event_loop_tasks",
)


def of_envoy(stack: LocalStack) -> dict[str, int]:
    """The requests and connections that Envoy holds."""
    stats = stack.envoy.stats("(http|cluster)")
    return {name: stats[name] for name in _ENVOYS}


def files_of_workers(stack: LocalStack) -> int:
    """Open files of the workers."""
    return sum(map(_files, stack.sidecar.worker_pids()))


def memory_of_workers(stack: LocalStack) -> int:
    """Resident memory of the workers, in KiB."""
    return sum(map(_memory, stack.sidecar.worker_pids()))


def of_sidecar(stack: LocalStack) -> dict[str, int]:
    """What the sidecar tells of itself, and what stands in its store and its state."""
    with DIRECT.open(urllib.request.Request(f"http://{stack.admin}/metrics"), timeout=10) as answer:
        scraped = Scraped(answer.read().decode())
    gauges = {name: int(scraped.value(name)) for name in _GAUGES}
    ledger = LocalLedger(stack)
    (open_ones,) = ledger.rows("SELECT count(*) AS number FROM reservations WHERE settled_at IS NULL")
    # Each is started once more for each that is killed.
    starts = int(scraped.value("responses_worker_starts_total"))
    slots = len(list(ledger.file.parent.glob("*.slots")))
    told = {"starts of workers": starts, "reservations open in the store": open_ones["number"], "files of slots": slots}
    return {**gauges, **told}


def of_processes(stack: LocalStack) -> dict[str, int]:
    """Open files, threads, processes and shared memory of all parts."""
    assert stack.triton is not None
    supervisor, workers = stack.sidecar.process.pid, stack.sidecar.worker_pids()
    regions = Path("/dev/shm").glob(f"{stack.triton.shared_memory_prefix}*")
    return {
        "files of the supervisor": _files(supervisor),
        "files of the workers": files_of_workers(stack),
        "threads of the workers": sum(map(_threads, workers)),
        "processes of the sidecar": len(procfs.members(supervisor)),
        "files of Envoy": _files(stack.envoy.process.pid),
        "files of Triton": _files(stack.triton.pid),
        "regions of shared memory": len(list(regions)),
    }


def memory(stack: LocalStack) -> dict[str, int]:
    """Resident memory by part, in KiB."""
    workers = {f"worker {index}": _memory(pid) for index, pid in enumerate(stack.sidecar.worker_pids())}
    return {"supervisor": _memory(stack.sidecar.process.pid), **workers, "Envoy": _memory(stack.envoy.process.pid)}


def _files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def _memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
