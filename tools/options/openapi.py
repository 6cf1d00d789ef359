"""The requests of `invar serve` as OpenAPI 3.1: of src/serve/protocol/routes.toml and fields.toml.
tools/options/request_fields.py puts the text into the program, and tools/docs/generate.py writes it
as docs/reference/openapi.json."""

import json
import sys
from pathlib import Path

import tomllib

KEYS = set("method path summary run waits open body form answer streams batch".split())
TYPES = {
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "texts": {"type": ["string", "array"], "items": {"type": "string"}},
    "ids": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}},
    "list": {"type": "array"},
    "object": {"type": "object"},
    "any": {},
}
# What every request may be answered with, and those that need no computation.
ERRORS = {
    "400": "the request cannot be answered: the message says why",
    "401": "a key is needed",
    "403": "a page of a browser from elsewhere",
    "404": "there is no such model, receipt or path",
    "413": "the body is too large",
    "415": "the body is not what the request takes: JSON, or a form",
    "421": "this host has another name",
    "429": "too many requests wait: ask again later",
    "500": "a fault of the server: the same request fails again",
    "503": "the server is stopping: ask again later",
}
# And what those for a receipt may be answered with.
ERRORS_OF_RECEIPTS = {
    "409": "the receipt is kept without its prompt: send that",
    "422": "the receipt is of another prompt, or of a model that is not here",
}


def routes(root):
    """name -> row, checked."""
    rows = tomllib.loads((Path(root) / "src/serve/protocol/routes.toml").read_text())
    for name, row in rows.items():
        wrong = set(row) - KEYS
        if wrong or not {"method", "path", "summary", "run", "answer"} <= set(row):
            sys.exit(
                f"src/serve/protocol/routes.toml: {name}: {sorted(wrong) or 'a key is missing'}"
            )
    return rows


def nullable(schema):
    if "type" not in schema:
        return schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]}


def member(row, needed, form):
    schema = dict(TYPES[row["type"]])
    if "range" in row:
        schema |= dict(zip(("minimum", "maximum"), row["range"], strict=True))
    # null is as if the member were not there. A form has no null.
    if "only" in row or "choices" in row:
        schema = {"enum": [*row.get("only", row.get("choices")), *([] if form else [None])]}
    elif not needed and not form:
        schema = nullable(schema)
    return schema | {"description": " ".join(row["help"].split())}


def body(endpoint, fields, endpoints, form):
    properties, needed = {}, []
    for key, row in fields.items():
        if endpoint not in endpoints(row["of"]):
            continue
        name = row.get("name", key)
        if endpoint in endpoints(row.get("needed", "")):
            needed.append(name)
        properties[name] = member(row, name in needed, form)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": needed} if needed else {})


def answer(row):
    if isinstance(row["answer"], str):
        return {row["answer"]: {"schema": {"type": "string"}}}
    members = {name: {"type": kind} for name, kind in row["answer"].items()}
    schema = {"type": "object", "properties": members, "required": list(members)}
    content = {"application/json": {"schema": schema}}
    if row.get("streams"):
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return content


def operation(name, row):
    anthropic = row["path"].startswith("/v1/messages")
    error = {"$ref": "#/components/schemas/" + ("MessagesError" if anthropic else "Error")}
    content = {"application/json": {"schema": error}}
    responses = {"200": {"description": row["summary"], "content": answer(row)}}
    errors = ERRORS | (ERRORS_OF_RECEIPTS if row["path"] == "/v1/receipts/{id}" else {})
    responses |= {s: {"description": text, "content": content} for s, text in errors.items()}
    out = {"operationId": name, "summary": row["summary"], "responses": responses}
    if row.get("open"):
        out["security"] = []
    if row["path"].endswith("{id}"):
        identifier = {"name": "id", "in": "path", "required": True}
        out["parameters"] = [identifier | {"schema": {"type": "string", "minLength": 1}}]
    if "body" in row:
        schema = {"$ref": f"#/components/schemas/{row['body']}"}
        kind = "multipart/form-data" if row.get("form") else "application/json"
        out["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return out


def text(rows, fields, endpoints):
    """`rows`: of routes(). `fields`: the rows of fields.toml. `endpoints`: of request_fields.py."""
    paths, schemas = {}, {}
    for name, row in rows.items():
        paths.setdefault(row["path"], {})[row["method"].lower()] = operation(name, row)
        if row.get("body", "receipt") != "receipt":
            form = row.get("form", False)
            schemas[row["body"]] = body(row["body"], fields, endpoints, form)
    string = {"type": ["string", "null"]}
    message = {"message": {"type": "string"}, "type": {"type": "string"}}
    schemas["receipt"] = {"type": "object", "description": "a receipt (spec/receipt.md)"}
    for name, members in (("Error", {"param": string, "code": string}), ("MessagesError", {})):
        properties = message | members
        inner = {"type": "object", "properties": properties, "required": list(properties)}
        schemas[name] = {"type": "object", "properties": {"error": inner}, "required": ["error"]}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "invar serve",
            "version": "1",
            "description": "Answers whose bits depend on their own requests alone, with receipts.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }
    return json.dumps(document, indent=1) + "\n"
