"""Shapes of results from sizes that a compiler leaves open (torch.SymInt), so that one graph serves
all of them. They are the operation's own inference on symbols; where that needs a number, the graph
is for the sizes at hand alone."""

import torch

from invar import _native


def _factor(factor, sizes):
    if isinstance(factor, str):
        return sizes[factor]
    terms, more = factor
    if isinstance(more, int):
        return _value(terms, sizes) // more
    return torch.sym_min(_value(terms, sizes), _value(more, sizes))


def _value(terms, sizes):
    """The sum of products that the inference says, for values of its symbols."""
    total = 0
    for product, factors in terms:
        for factor in factors:
            product = product * _factor(factor, sizes)
        total = total + product
    return total


def shape_of(op, attributes, operands, sizes):
    """The shape of the result for operands of types (element type, shape), in which a size is a
    number or a name in `sizes`."""
    named = [(dtype, [str(n) for n in shape]) for dtype, shape in operands]
    return tuple(_value(n, sizes) for n in _native.infer_sizes(op, attributes, named))


def _named(n, sizes, guarded):
    """A name in `sizes` for a symbol. With `guarded`, sizes that are equal at hand have one name,
    and the graph is for equal ones."""
    if not isinstance(n, torch.SymInt):
        return n
    for name, other in sizes.items():
        if str(n) == str(other) or (guarded and n == other):
            return name
    name = f"n{len(sizes)}"
    sizes[name] = n
    return name


def type_of(call, operands, shape):
    """(element type, shape) of the result for operands of these types, where `shape` is what the
    caller says or None. Sizes may be symbols."""
    at_hand = tuple((dtype, tuple(hint(n) for n in sizes)) for dtype, sizes in operands)
    dtype, found = call.type_of(at_hand)
    if shape is not None or call.dtype is not None:
        return dtype, tuple(operands[0][1] if shape is None else shape)
    for guarded in (False, True):
        sizes = {}
        types = [(t, [_named(n, sizes, guarded) for n in shape]) for t, shape in operands]
        if not sizes:
            return dtype, found
        try:
            return dtype, shape_of(call.op, call.attributes, types, sizes)
        except (_native.NotCovered, _native.BadInput):
            pass
    return call.type_of(tuple((t, tuple(int(n) for n in shape)) for t, shape in operands))


def hint(n):
    """The size at hand, which does not bind the graph to it."""
    if isinstance(n, torch.SymInt) and n.node.has_hint():
        return n.node.hint
    return int(n)
