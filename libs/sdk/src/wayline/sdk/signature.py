"""A function's signature: the arguments that a model gives it, and the parameters that are given the call."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from faststream import Context, Depends
from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import from_json, to_json

from wayline.contracts.bus_tools import InvokeResult
from wayline.sdk.call import Call

DEPENDS: Final = type(Depends(dict))
CONTEXT: Final = type(Context())
"""What these functions of FastStream return."""
INSTEAD = (
    "which FastStream fills for subscribers and not for tools: call the function yourself, take the call's own facts "
    "from a parameter annotated `Call`, and what the process keeps from a name of your module"
)
NOT_BY_NAME = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


@dataclass(frozen=True)
class Signature:
    """What a function takes."""

    arguments: type[BaseModel]
    """Checks the arguments of a model."""
    call_parameters: tuple[str, ...]
    """Are given the `Call`; no model can fill them."""
    returns: Any = None
    """The annotation of its result; None: it has none."""

    @classmethod
    def of(cls, function: Callable[..., Any], *, tool: str) -> Signature:
        """Read a function's signature. Raises TypeError where it can be no tool."""
        hints = _hints(function, tool)
        fields: dict[str, Any] = {}
        calls: list[str] = []
        for parameter in inspect.signature(function).parameters.values():
            _require_argument(parameter, hints, tool)
            if _is_call(hints[parameter.name]):
                calls.append(parameter.name)
            else:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (hints[parameter.name], default)
        return cls(_model(fields, tool), tuple(calls), hints.get("return"))

    def schema(self, *, tool: str) -> dict[str, Any]:
        """Return the JSON schema of the arguments. Raises TypeError where a type has none."""
        try:
            schema = self.arguments.model_json_schema()
        except PydanticUserError as error:
            raise TypeError(f"the tool {tool}: a model can be told only types of JSON: {error.message}") from error
        schema.pop("title", None)
        # As it is read from the bus, so that both ends find the same hash of it.
        return from_json(to_json({"type": "object", **schema}))

    def output_schema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the structured content of results; None: they have none, or their type has none."""
        if self.returns in (None, Any) or _is_result(self.returns):
            return None
        try:
            schema = TypeAdapter(self.returns).json_schema(mode="serialization")
        except PydanticUserError:
            return None
        schema.pop("title", None)
        # Of anything but an object the result is text.
        return from_json(to_json(schema)) if schema.get("type") == "object" else None


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"the tool {tool}: {error}; import the types of its parameters where it runs") from error


def _require_argument(parameter: inspect.Parameter, hints: dict[str, Any], tool: str) -> None:
    """Raise TypeError where a parameter can be given neither an argument nor the call."""
    name = parameter.name
    if parameter.kind in NOT_BY_NAME:
        raise TypeError(f"the tool {tool}: a model gives its arguments by name, so {parameter} cannot be one")
    if injected := _injected(parameter, hints.get(name)):
        raise TypeError(f"the tool {tool}: its parameter {name} is a `{injected}`, {INSTEAD}")
    if name not in hints:
        raise TypeError(f"the tool {tool}: its parameter {name} needs a type, which models are told")
    if name.startswith("_") or (name.startswith("model_") and hasattr(BaseModel, name)):
        raise TypeError(f"the tool {tool}: its parameter {name} cannot be an argument; give it another name")
    if not _is_call(hints[name]) and _holds_call(hints[name]):
        raise TypeError(f"the tool {tool}: its parameter {name} is given the call where its type is `Call` alone")


def _model(fields: dict[str, Any], tool: str) -> type[BaseModel]:
    try:
        # A parameter may be called `copy` or `json`, like methods of a model that are not used here.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return create_model(tool, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
    except (NameError, PydanticUserError) as error:
        raise TypeError(f"the tool {tool}: its parameters cannot be arguments: {error}") from error


def _injected(parameter: inspect.Parameter, hint: Any) -> str | None:
    """Return what FastStream would fill a parameter with; None: nothing, it is an argument."""
    for one in (parameter.default, *(get_args(hint)[1:] if get_origin(hint) is Annotated else ())):
        if isinstance(one, DEPENDS | CONTEXT):
            return "Depends" if isinstance(one, DEPENDS) else "Context"
    return None


def _is_result(hint: Any) -> bool:
    """Return whether a result may be a `Result`, which says itself what it holds."""
    return hint is InvokeResult or any(map(_is_result, get_args(hint)))


def _is_call(hint: Any) -> bool:
    """Return whether an annotation is `Call`, also as `Annotated[Call, …]` or `Call | None`."""
    if get_origin(hint) is Annotated:
        return _is_call(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return any(map(_is_call, get_args(hint)))
    return hint is Call


def _holds_call(hint: Any) -> bool:
    """Return whether `Call` is anywhere in an annotation."""
    return hint is Call or any(map(_holds_call, get_args(hint)))
