"""Who follows docs/envoy.md has configurations that Envoy takes."""

from __future__ import annotations

import sys
from pathlib import Path

import trustme
import yaml

from stack.paths import ROOT
from tests.e2e.reader import Reader

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}


def test_what_the_page_renders_envoy_takes(tmp_path: Path) -> None:
    settings = {"node": "n", "sockets": "sockets", "triton": {"address": "127.0.0.1:8001"}, "models": [MODEL]}
    (tmp_path / "sidecar.yaml").write_text(yaml.safe_dump(settings))
    certificate = trustme.CA().issue_cert("localhost")
    (tmp_path / "tls").mkdir()
    certificate.private_key_pem.write_to_path(tmp_path / "tls/key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "tls/chain.pem")
    with Reader(tmp_path, [Path(sys.executable).parent], {}) as reader:
        reader.follow((ROOT / "docs/envoy.md").read_text(encoding="utf-8"))
        assert ["OK" in output for output in reader.outputs] == [True, True]
