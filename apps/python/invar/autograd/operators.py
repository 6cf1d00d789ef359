"""Calls as operators of torch.library, which library.py registers."""

import functools
from typing import Any

import torch

from invar import _native
from invar.autograd import exact

_TEXTS = ("isa", "state")  # attributes that are no numbers
register: Any = None  # registers the operators; the package sets it


def text_of(attributes):
    """Attributes as text, in the order of their names."""
    parts = []
    for name in sorted(attributes):
        value = attributes[name]
        if isinstance(value, list | tuple):
            value = ",".join([str(int(n)) for n in value]) + ","
        elif isinstance(value, int):
            value = int(value)
        parts.append(f"{name}={value}")
    return " ".join(parts)


@functools.lru_cache(4096)
def attributes_of(text):
    """The attributes that text_of wrote."""
    attributes = {}
    for part in text.split():
        name, _, value = part.partition("=")
        if "," in value:
            attributes[name] = [int(n) for n in value.split(",") if n]
        elif value.lstrip("-").isdigit():
            attributes[name] = int(value)
        else:
            attributes[name] = value if name in _TEXTS else float(value)
    return attributes


def dispatched(call, operands):
    """The call as an operator: whoever watches operators sees it."""
    register()
    attributes = {**call.attributes, "isa": call.isa} if call.isa else call.attributes
    operator = getattr(torch.ops.invar, call.op).default
    return operator(list(operands), text_of(attributes), call.shape, call.dtype)


def traced(call, operands):
    """The call in a graph that torch.compile or torch.export makes."""
    if exact.active():
        raise _native.NotCovered(
            f"{call.op}: exact gradients are for eager mode: do not compile while parameters are "
            "registered"
        )
    return dispatched(call, operands)
