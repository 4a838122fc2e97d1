"""Kubernetes documents as YAML that can be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

Document = dict[str, Any]


class _Dumper(yaml.SafeDumper):
    """Keeps texts of several lines, and repeats what stands twice instead of pointing to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def document(api: str, kind: str, namespace: str, spec: Document, name: str = "responses") -> Document:
    """One of our resources."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def dumped(head: str, documents: Iterable[Document]) -> str:
    """All of them, behind a comment ``head`` of whole lines."""
    return head + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)
