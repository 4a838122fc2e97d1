"""Runs the scripted upstream: ``python -m stack.native PORT LOG KEY [PEM]``; the file has a certificate and its key."""

from __future__ import annotations

import asyncio
import ssl
import sys
from pathlib import Path

from stack.native.server import Upstream


async def main(port: str, log: str, key: str, certificate: str | None = None) -> None:
    """Serve until the process is ended."""
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
    server = await Upstream(key, Path(log)).serve(int(port), tls)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
