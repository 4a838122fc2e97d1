"""docker-compose.yml by the specification, and that its containers have the least that they need."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml

from sidecar.config.models import Config
from stack.paths import ROOT

FILE = ROOT / "docker-compose.yml"
CONFIGURATIONS = sorted((ROOT / "deploy/compose").glob("sidecar*.yaml"))


def compose(text: str) -> dict[str, Any]:
    """What the file says where no variable is set, without what YAML alone reads."""
    text = re.sub(r"\$\{\w+:-([^}]*)}", r"\1", text)
    assert "$" not in text
    read: dict[str, Any] = yaml.safe_load(text)
    return {name: value for name, value in read.items() if not name.startswith("x-")}


def validate(content: dict[str, Any]) -> None:
    """Read it as the specification has it, with everything that is referred to.

    Raises:
        ValueError: that cannot be done.
    """
    # This parser takes a tag or a digest, where Docker takes both and holds to the digest.
    text = re.sub(r":[\w.-]+@sha256:", "@sha256:", json.dumps(content))
    compose_spec.PyCompose.from_json(text).validate()


CONTENT = compose(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = CONTENT["services"]


def test_the_file_keeps_to_the_specification() -> None:
    validate(CONTENT)


def test_the_file_for_tls_keeps_to_it_too() -> None:
    added = compose((ROOT / "deploy/compose/tls.yml").read_text())["services"]
    together = {name: {**service, **added.get(name, {})} for name, service in SERVICES.items()}
    assert added.keys() <= SERVICES.keys()
    validate({**CONTENT, "services": together})
    # Only Envoy gets another file and port.
    assert added["envoy"].keys() == {"healthcheck", "volumes", "ports"}


@pytest.mark.parametrize(("right", "wrong"), [("read_only:", "read_onyl:"), ("[store]", "[stroe]")])
def test_a_mistake_would_be_found(right: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong.strip("[:]")):
        validate(compose(FILE.read_text().replace(right, wrong)))


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "env_file"} & service.keys()
    # Ours and Prometheus's have a user of their own.
    assert "build" in service or service.get("user", "").split(":")[0] not in ("", "0", "root") or name == "prometheus"


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_built_here_or_pinned(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        assert f"\nFROM {{}} AS {service['build']['target']}\n".split("{}")[1] in (ROOT / "Dockerfile").read_text()
    elif not service["image"].startswith("nvcr.io/"):  # has no tags that move
        assert re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", service["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_this_machine_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_in_the_environment(name: str) -> None:
    for variable in SERVICES[name].get("environment", {}):
        assert not re.search("PASSWORD|SECRET|KEY|TOKEN", variable) or variable.endswith("_FILE")


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_that_stays_has_a_health_check_and_a_bound_on_its_log(name: str) -> None:
    service = SERVICES[name]
    if service.get("restart") == "unless-stopped":
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        of_the_image = service.get("build", {}).get("target") in ("sidecar", "triton-cpu")
        assert "healthcheck" in service or of_the_image or name == "triton-gpu"


def files(name: str) -> dict[str, str]:
    """The files and directories of this repository in a container, by their place there."""
    mounts = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
    assert all(mount[2:] == ["ro"] for mount in mounts if mount[0].startswith("./"))
    return {mount[1]: mount[0] for mount in mounts if mount[0].startswith("./")}


@pytest.mark.parametrize("name", SERVICES)
def test_the_files_are_there_and_can_be_read_by_any_user(name: str) -> None:
    for path in files(name).values():
        assert stat.S_IMODE((ROOT / path).stat().st_mode) & 0o444 == 0o444


def test_scripts_can_be_run() -> None:
    for script in (ROOT / "deploy/compose").glob("*.sh"):
        assert stat.S_IMODE(script.stat().st_mode) & 0o111 == 0o111


def test_the_example_for_gpus_sets_what_is_asked_for() -> None:
    lines = (ROOT / "deploy/compose/gpu.env").read_text().splitlines()
    given = dict(line.split("=") for line in lines if not line.startswith("#"))
    assert (ROOT / given["SIDECAR_CONFIG"]).is_file()
    assert {name for name in given if f"${{{name}:-" not in FILE.read_text()} == {"COMPOSE_PROFILES"}


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_the_sidecar_takes_its_configuration(path: Path) -> None:
    config = Config.model_validate(yaml.safe_load(path.read_text()))
    envoy = SERVICES["envoy"]["command"]
    assert int(envoy[envoy.index("--concurrency") + 1]) == config.workers
    assert config.sockets == Path("/run/responses")
    assert SERVICES["sidecar"]["stop_grace_period"] == f"{config.drain + 15:g}s"


def test_prometheus_asks_where_the_metrics_are() -> None:
    jobs = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    config = Config.model_validate(yaml.safe_load(CONFIGURATIONS[0].read_text()))
    assert config.admin.address is not None
    assert targets["responses-sidecar"] == [f"sidecar:{config.admin.address.split(':')[1]}"]
    assert 'job="responses-sidecar"' in (ROOT / "deploy/prometheus/alerts.yml").read_text()
    together = set(SERVICES["sidecar"]["networks"]) & set(SERVICES["triton-cpu"]["networks"])
    assert set(SERVICES["prometheus"]["networks"]) <= together


def test_grafana_shows_the_dashboard_from_that_prometheus() -> None:
    mounted = {Path(path).name: Path(target) for target, path in files("grafana").items()}
    provisioning = ROOT / "deploy/grafana/provisioning"
    provider = yaml.safe_load((provisioning / "dashboards.yml").read_text())["providers"][0]
    assert mounted["responses-sidecar.json"].parent == Path(provider["options"]["path"])
    source = yaml.safe_load((provisioning / "data-sources.yml").read_text())["datasources"][0]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")


def test_secrets_are_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    make = ["sh", str(ROOT / "deploy/compose/make-secrets.sh"), str(tmp_path)]
    subprocess.run(make, check=True)
    first = {path.name: path.read_text() for path in tmp_path.iterdir()}
    subprocess.run(make, check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == first
    assert len(set(first.values())) == len(first)
    for path in tmp_path.iterdir():
        # 0o037 is what the sidecar takes no secret with.
        assert not stat.S_IMODE(path.stat().st_mode) & 0o037
    assert first["postgres.password"] in first["store.url"]
