"""As much of the structure of OpenAPI 3.1 as the documents use, as a JSON Schema."""

from typing import Any

STRUCTURE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "additionalProperties": False,
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "info": {"type": "object", "required": ["title", "version"], "additionalProperties": {"type": "string"}},
        "servers": {"type": "array", "items": {"required": ["url"]}},
        "security": {"type": "array", "items": {"additionalProperties": {"type": "array"}}},
        "paths": {
            "additionalProperties": False,
            "patternProperties": {
                "^/": {
                    "propertyNames": {"enum": ["get", "put", "post", "delete", "options", "head", "patch", "trace"]},
                    "additionalProperties": {"$ref": "#/$defs/operation"},
                }
            },
        },
        "components": {
            "propertyNames": {"enum": ["schemas", "headers", "securitySchemes"]},
            "additionalProperties": {"propertyNames": {"pattern": r"^[a-zA-Z0-9._-]+$"}},
            "properties": {
                "headers": {"additionalProperties": {"type": "object", "required": ["schema"]}},
                "securitySchemes": {
                    "additionalProperties": {
                        "required": ["type"],
                        "oneOf": [
                            {"properties": {"type": {"const": "http"}}, "required": ["scheme"]},
                            {"properties": {"type": {"const": "apiKey"}}, "required": ["in", "name"]},
                        ],
                    }
                },
            },
        },
    },
    "$defs": {
        "operation": {
            "type": "object",
            "required": ["operationId", "responses"],
            "propertyNames": {"enum": ["operationId", "summary", "parameters", "requestBody", "responses", "security"]},
            "properties": {
                "parameters": {"items": {"required": ["name", "in", "schema"]}},
                "requestBody": {"required": ["content"], "properties": {"content": {"$ref": "#/$defs/content"}}},
                "responses": {
                    "minProperties": 1,
                    "propertyNames": {"pattern": r"^[1-5]\d\d$"},
                    "additionalProperties": {
                        "required": ["description"],
                        "propertyNames": {"enum": ["description", "headers", "content"]},
                        "properties": {"content": {"$ref": "#/$defs/content"}},
                    },
                },
            },
        },
        "content": {
            "propertyNames": {"pattern": "^[a-z]+/[a-z-]+$"},
            "additionalProperties": {
                "required": ["schema"],
                "propertyNames": {"enum": ["schema", "examples"]},
                "properties": {"examples": {"additionalProperties": {"required": ["value"]}}},
            },
        },
    },
}
