"""llama.cpp's own HTTP server, as xllamacpp brings it: ``python llama_server.py WEIGHTS PORT KEY_FILE NAME``.

It speaks the Responses API at ``/v1/responses``, in its own way: its events have no numbers, and it knows neither tools
nor formats there.
"""

import sys
import threading
from pathlib import Path

import xllamacpp

# Each request has a slot of its own, with so many tokens.
_SLOTS, _CONTEXT = 2, 4096


def main(weights: str, port: str, key_file: str, name: str) -> None:
    """Serve until the process is ended."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.api_keys = [Path(key_file).read_text().strip()]
    parameters.n_parallel = _SLOTS
    parameters.n_ctx = _SLOTS * _CONTEXT
    # In pieces of so many tokens, between which other requests go on.
    parameters.n_batch = parameters.n_ubatch = 64
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.cache_ram_mib = 0
    parameters.verbosity = -1
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cors_origins = ""
    server = xllamacpp.Server(parameters)
    print(f"listens at {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
