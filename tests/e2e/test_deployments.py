"""Envoy's configuration as Compose, Kubernetes and systemd have it made, by the commands that stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import trustme
import yaml

from stack import envoy, kustomize
from stack.paths import ROOT

PROGRAM = [sys.executable, "-m", "sidecar"]


def of_compose() -> tuple[str, str]:
    """The command, and the sidecar's configuration."""
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["render-envoy"]
    return service["command"][0], (ROOT / "deploy/compose/sidecar.yaml").read_text()


def of_compose_with_tls() -> tuple[str, str]:
    """The same with a certificate."""
    service = yaml.safe_load((ROOT / "deploy/compose/tls.yml").read_text())["services"]["render-envoy"]
    return service["command"][0], of_compose()[1]


def of_kubernetes() -> tuple[str, str]:
    """The same of an overlay; the command is that of them all."""
    objects = {one["kind"]: one for one in kustomize.build(ROOT / "deploy/kubernetes/cpu")}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    command = next(one["args"][0] for one in pod["initContainers"] if one["name"] == "render-envoy")
    return command, objects["ConfigMap"]["data"]["sidecar.yaml"]


def of_systemd() -> tuple[str, str]:
    """The same of the unit, whose configuration is an operator's own: here that of Compose."""
    unit = (ROOT / "deploy/systemd/responses-envoy.service").read_text()
    command = re.search(r"^ExecStartPre=/bin/sh -c '(.*)'$", unit, re.MULTILINE)
    options = re.search(r'^Environment="RENDER_OPTIONS=(.*)"$', unit, re.MULTILINE)
    assert command is not None
    assert options is not None
    return command[1].replace("$$RENDER_OPTIONS", options[1]), of_compose()[1]


PLACES = {
    "compose": of_compose,
    "compose-tls": of_compose_with_tls,
    "kubernetes": of_kubernetes,
    "systemd": of_systemd,
}


@pytest.mark.parametrize("place", PLACES)
def test_envoy_takes_what_is_made_for_it(place: str, tmp_path: Path) -> None:
    command, configuration = PLACES[place]()
    words = shlex.split(command.split(">")[0])
    program = next(at for at, word in enumerate(words) if word.endswith("responses-sidecar"))
    subprocess.run(["sh", ROOT / "deploy/compose/make-secrets.sh", tmp_path], check=True)
    config = tmp_path / "sidecar.yaml"
    config.write_text(re.sub(r"(?m)((?:url_file|_key): )\S*/", rf"\1{tmp_path}/", configuration))
    certificate = trustme.CA().issue_cert("node.example")
    certificate.private_key_pem.write_to_path(tmp_path / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    files = {"sidecar.yaml", "tls.crt", "tls.key"}
    arguments = [str(tmp_path / Path(word).name) if Path(word).name in files else word for word in words[program + 1 :]]
    rendered = tmp_path / "envoy.yaml"
    with rendered.open("w") as output:
        subprocess.run([*PROGRAM, *arguments], cwd=ROOT, stdout=output, check=True)
    envoy.validate(rendered)
    clusters = {one["name"]: one for one in yaml.safe_load(rendered.read_text())["static_resources"]["clusters"]}
    assert str(clusters["sidecar"]).count("/run/responses/worker-") == 2
