"""What the definitions of the resources that we write allow, as far as we write it: reduced by hand from these.

``EnvoyFilter`` as of Istio 1.32 (``manifests/charts/base/files/crd-all.gen.yaml``); ``Backend``,
``EnvoyExtensionPolicy`` and ``EnvoyPatchPolicy`` as of Envoy Gateway 1.9 (``charts/gateway-helm/charts/crds``), with
the ``HTTPRoute`` of the Gateway API that it brings.
Members that we do not write are left out, so that one that does not exist is found.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "minLength": 1}
ANYTHING = {"type": "object"}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    properties = {**required, **optional}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _list(of: dict[str, Any], most: int = 2**31) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1, "maxItems": most}


def _resource(api: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    label = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 253}
    metadata = _object({"name": label, "namespace": label})
    return _object({"apiVersion": {"const": api}, "kind": {"const": kind}, "metadata": metadata, "spec": spec})


_PORT = {"type": "integer", "minimum": 0, "maximum": 4294967295}
_FILTER = _object({"name": TEXT}, subFilter=_object({"name": TEXT}))
_MATCH = _object(
    {"context": {"enum": ["ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY", "WAYPOINT"]}},
    listener=_object({}, name=TEXT, portNumber=_PORT, filterChain=_object({"filter": _FILTER})),
    routeConfiguration=_object({"portNumber": _PORT}),
)
_APPLY_TO = {"enum": ["LISTENER", "NETWORK_FILTER", "HTTP_FILTER", "ROUTE_CONFIGURATION", "HTTP_ROUTE", "CLUSTER"]}
_OPERATION = {"enum": ["MERGE", "ADD", "REMOVE", "INSERT_BEFORE", "INSERT_AFTER", "INSERT_FIRST", "REPLACE"]}
_PATCH = _object({"operation": _OPERATION, "value": ANYTHING})
_CONFIG_PATCH = _object({"applyTo": _APPLY_TO, "match": _MATCH, "patch": _PATCH})
_LABELS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}, "maxProperties": 256}

_REFERENCE = _object({"group": {"type": "string"}, "kind": TEXT, "name": TEXT})
_PROCESSING = _object(
    {"body": {"enum": ["Streamed", "Buffered", "BufferedPartial", "FullDuplexStreamed"]}},
    attributes=_list({"type": "string", "pattern": r"^(connection\.|source\.|request\.|response\.)[a-z_1-9]*$"}),
)
_EXT_PROC = _object(
    {
        "backendRefs": _list(_REFERENCE, 16),
        "processingMode": _object({"request": _PROCESSING, "response": _PROCESSING}),
    }
)
_JSON_OPERATION = _object(
    {"op": {"enum": ["add", "remove", "replace", "move", "copy", "test"]}}, path=TEXT, jsonPath=TEXT, value={}
)
_XDS_TYPE = {
    "enum": [
        f"type.googleapis.com/envoy.config.{kind}"
        for kind in ("listener.v3.Listener", "route.v3.RouteConfiguration", "cluster.v3.Cluster")
    ]
}
_PATH_MATCH = _object({"type": {"enum": ["Exact", "PathPrefix"]}, "value": {"type": "string", "pattern": "^/"}})
_RULE = _object({"matches": _list(_object({"path": _PATH_MATCH}), 64), "backendRefs": _list(_REFERENCE, 16)})

DEFINITIONS = {
    "EnvoyFilter": _resource(
        "networking.istio.io/v1alpha3",
        "EnvoyFilter",
        _object({"workloadSelector": _object({"labels": _LABELS}), "configPatches": _list(_CONFIG_PATCH)}),
    ),
    "Backend": _resource(
        "gateway.envoyproxy.io/v1alpha1",
        "Backend",
        _object({"endpoints": _list(_object({"unix": _object({"path": {"type": "string", "maxLength": 108}})}), 256)}),
    ),
    "HTTPRoute": _resource(
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        _object(
            {
                "parentRefs": _list(_object({"name": TEXT, "sectionName": TEXT}), 32),
                "hostnames": _list(TEXT, 16),
                "rules": _list(_RULE, 16),
            }
        ),
    ),
    "EnvoyExtensionPolicy": _resource(
        "gateway.envoyproxy.io/v1alpha1",
        "EnvoyExtensionPolicy",
        _object({"targetRefs": _list(_REFERENCE, 16), "extProc": _list(_EXT_PROC, 16)}),
    ),
    "EnvoyPatchPolicy": _resource(
        "gateway.envoyproxy.io/v1alpha1",
        "EnvoyPatchPolicy",
        _object(
            {
                "targetRef": _REFERENCE,
                "type": {"const": "JSONPatch"},
                "jsonPatches": _list(_object({"type": _XDS_TYPE, "name": TEXT, "operation": _JSON_OPERATION})),
            }
        ),
    ),
}
