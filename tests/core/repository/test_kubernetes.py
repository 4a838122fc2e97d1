"""The manifests by Kubernetes' own schemas, and that what they refer to is there."""

from __future__ import annotations

from functools import cache
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sidecar.config.models import Config
from sidecar.telemetry.metrics.table import METRICS
from stack import kustomize
from stack.paths import ROOT

OVERLAYS = ["cpu", "gpu"]
OLDEST = "1.30"
VERSIONS = [OLDEST, kubernetes_validate.latest_version()]
LABELS = {"app.kubernetes.io/name": "responses"}


@cache
def objects(overlay: str) -> dict[str, dict[str, Any]]:
    """The objects of an overlay by kind, of which each has one."""
    built = kustomize.build(ROOT / "deploy/kubernetes" / overlay)
    found = {content["kind"]: content for content in built}
    assert len(found) == len(built) == 7
    return found


def pod(overlay: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects(overlay)["Deployment"]["spec"]["template"]["spec"]
    return spec


def containers(overlay: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in [*pod(overlay)["initContainers"], *pod(overlay)["containers"]]}


def config(overlay: str) -> Config:
    return Config.model_validate(yaml.safe_load(objects(overlay)["ConfigMap"]["data"]["sidecar.yaml"]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_objects_keep_to_the_schemas(overlay: str, version: str) -> None:
    for content in objects(overlay).values():
        assert version.startswith(kubernetes_validate.validate(content, version, strict=True))


def test_a_mistake_would_be_found() -> None:
    service = objects("cpu")["Service"]
    wrong = {**service, "spec": {**service["spec"], "slector": {}}}
    with pytest.raises(kubernetes_validate.ValidationError, match="slector"):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_keeps_to_the_restricted_profile(overlay: str) -> None:
    security = pod(overlay)["securityContext"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"] == security["runAsGroup"] == security["fsGroup"] == 10001
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(overlay).keys()
    assert all("hostPath" not in volume for volume in pod(overlay)["volumes"])
    for container in containers(overlay).values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_can_speak_to_the_cluster(overlay: str) -> None:
    assert objects(overlay)["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod(overlay)["automountServiceAccountToken"] is False
    assert pod(overlay)["serviceAccountName"] == objects(overlay)["ServiceAccount"]["metadata"]["name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_are_files_where_the_configuration_looks_for_them(overlay: str) -> None:
    variables = [variable for one in containers(overlay).values() for variable in one.get("env", [])]
    assert all("secretKeyRef" not in variable.get("valueFrom", {}) for variable in variables)
    volume = next(volume for volume in pod(overlay)["volumes"] if volume["name"] == "secrets")
    assert not volume["projected"]["defaultMode"] & 0o037
    files = {item["path"] for source in volume["projected"]["sources"] for item in source["secret"]["items"]}
    settings = config(overlay)
    named = {settings.sealing_key, settings.stored.master_key, settings.store.url_file}
    assert {str(path) for path in named} == {f"/etc/responses/secrets/{file}" for file in files}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_mount_has_its_volume(overlay: str) -> None:
    volumes = [volume["name"] for volume in pod(overlay)["volumes"]]
    mounted = {mount["name"] for one in containers(overlay).values() for mount in one.get("volumeMounts", [])}
    assert sorted(volumes) == sorted(mounted)
    configuration = next(volume for volume in pod(overlay)["volumes"] if volume["name"] == "config")
    assert configuration["configMap"]["name"] == objects(overlay)["ConfigMap"]["metadata"]["name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_configuration_is_that_of_the_pod(overlay: str) -> None:
    settings, found = config(overlay), containers(overlay)
    envoy = found["envoy"]["args"]
    assert int(envoy[envoy.index("--concurrency") + 1]) == settings.workers
    mounts = {mount["name"]: mount["mountPath"] for mount in found["sidecar"]["volumeMounts"]}
    assert str(settings.sockets) == mounts["sockets"]
    assert str(settings.store.state) == mounts["state"]
    assert settings.admin.address == f"0.0.0.0:{port(found['sidecar'], 'metrics')}"
    assert settings.triton.address == "127.0.0.1:8001"
    assert f"--listen 0.0.0.0:{port(found['envoy'], 'http')} " in found["render-envoy"]["args"][0]
    assert objects(overlay)["Deployment"]["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(
        port(found["sidecar"], "metrics")
    )


def port(container: dict[str, Any], name: str) -> int:
    number: int = next(one["containerPort"] for one in container["ports"] if one["name"] == name)
    return number


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_answers_have_the_time_to_end(overlay: str) -> None:
    found = containers(overlay)
    pause = found["sidecar"]["lifecycle"]["preStop"]["sleep"]["seconds"]
    triton = next(int(one.split("=")[1]) for one in found["triton"]["args"] if one.startswith("--exit-timeout-secs"))
    assert pod(overlay)["terminationGracePeriodSeconds"] >= pause + config(overlay).drain + 10 + triton
    # These end after the sidecar, and in the other order than they start in.
    assert [one["name"] for one in pod(overlay)["initContainers"] if one.get("restartPolicy") == "Always"] == [
        "triton",
        "envoy",
    ]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_other_objects_are_for_these_pods(overlay: str) -> None:
    found = objects(overlay)
    assert found["Deployment"]["spec"]["template"]["metadata"]["labels"] == LABELS
    assert found["Service"]["spec"]["selector"] == LABELS
    for kind, member in [
        ("Deployment", "selector"),
        ("PodDisruptionBudget", "selector"),
        ("NetworkPolicy", "podSelector"),
    ]:
        assert found[kind]["spec"][member] == {"matchLabels": LABELS}
    target = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", found["Deployment"]["metadata"]["name"])
    metric = found["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric in {one.name for one in METRICS if one.kind == "gauge"}
    ports = {one["name"] for container in containers(overlay).values() for one in container.get("ports", [])}
    allowed = {one["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"] for one in rule["ports"]}
    assert allowed == ports


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_triton_is_for_its_pod_alone(overlay: str) -> None:
    arguments = containers(overlay)["triton"]["args"]
    # Metrics take the address of HTTP, unless they have one of their own.
    assert {"--grpc-address=127.0.0.1", "--http-address=127.0.0.1", "--metrics-address=0.0.0.0"} <= set(arguments)
