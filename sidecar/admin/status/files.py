"""The page's own files, which are packaged beside this module, and the headers that bind a browser to them."""

from __future__ import annotations

from importlib.resources import files

from sidecar.responses.reply import Reply

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Of everything under ``/status/``: nothing is loaded from elsewhere, run inline, or made markup of."""


def read_files() -> dict[str, Reply]:
    """The answers by file name; the page itself has an empty one."""
    found = {}
    for file in (files(__package__) / "page").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            name = "" if file.name == "index.html" else file.name
            found[name] = Reply(200, {"content-type": kind, "cache-control": "no-cache"}, file.read_bytes())
    return found
