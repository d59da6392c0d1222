"""`/openapi.json`, made from the same operations that the router serves and from their pydantic models."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from api.edge import CORRELATION_HEADER
from api.operations import Header, Operation
from api.problems import ProblemDocument
from domain.intake import CustomerId, Sku

_REFERENCE = "#/components/schemas/{model}"
#: Every route may be asked by the wrong method or fail.
_EVERYWHERE = (405, 500)

Schema = dict[str, Any]

_PATH_SCHEMAS: dict[str, Schema] = {
    "order_id": {"type": "string", "minLength": 1},
    "sku": TypeAdapter(Sku).json_schema(),
    "customer_id": TypeAdapter(CustomerId).json_schema(),
}


def document(operations: Sequence[Operation], title: str) -> Schema:
    """The OpenAPI 3.1 document of these operations."""
    asked: set[type[BaseModel]] = {operation.body for operation in operations if operation.body}
    told: set[type[BaseModel]] = {model for operation in operations for model in operation.answers.values() if model}
    kinds: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in sorted(asked, key=_name)),
        *((model, "serialization") for model in sorted(told | {ProblemDocument}, key=_name)),
    ]
    references, definitions = models_json_schema(kinds, ref_template=_REFERENCE)
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": paths,
        "components": {"schemas": definitions.get("$defs", {})},
    }


def _name(model: type[BaseModel]) -> str:
    return model.__name__


def _operation(operation: Operation, references: dict[Any, Schema]) -> Schema:
    responses = {str(status): _answer(operation, status, references) for status in operation.answers}
    for status in sorted({*operation.problems, *_EVERYWHERE}):
        responses[str(status)] = _problem(status, references)
    described: Schema = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "description": operation.handler.__doc__ or operation.summary,
        "parameters": [_path_parameter(name) for name in re.findall(r"{(\w+)}", operation.path)]
        + [_header_parameter(header) for header in operation.headers],
        "responses": responses,
    }
    if operation.body or operation.raw_body:
        schema = references[operation.body, "validation"] if operation.body else {"type": "object"}
        required = operation.body_required
        described["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return described


def _answer(operation: Operation, status: int, references: dict[Any, Schema]) -> Schema:
    model = operation.answers[status]
    schema = references[model, "serialization"] if model else {"type": "string"}
    headers = {**operation.response_headers, CORRELATION_HEADER: "The id of this piece of work in all logs"}
    return {
        "description": HTTPStatus(status).phrase,
        "headers": {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()},
        "content": {operation.media_type: {"schema": schema}},
    }


def _problem(status: int, references: dict[Any, Schema]) -> Schema:
    described: Schema = {
        "description": HTTPStatus(status).phrase,
        "content": {"application/problem+json": {"schema": references[ProblemDocument, "serialization"]}},
    }
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        described["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}
    return described


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": _PATH_SCHEMAS[name]}


def _header_parameter(header: Header) -> Schema:
    return {
        "name": header.name,
        "in": "header",
        "required": header.required,
        "description": header.description,
        "schema": {"type": "string", "minLength": 1, "maxLength": header.longest, "pattern": r"^[\x21-\x7e]+$"},
    }
