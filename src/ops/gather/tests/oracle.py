"""The outputs of this room's operations from spec/ops/gather.md, without the C++ code
(tests/conformance/oracle.py)."""

import numpy as np
from oracle import NAN, add, canon, maximum, mul, read_bits, write_bits

NOWHERE = {"f32": 0x7FC00000, "bf16": 0x7FC0, "f16": 0x7E00, "f64": 0x7FF8000000000000}


def normalize_index(i, n):
    """gather.3."""
    return i % n if -n <= i < n else None


def copied(dtype, out, bits):
    """gather.2: the bits of a result from those of an element."""
    return write_bits("f32", read_bits(dtype, bits)) if out == "f32" else bits


def operand(tensor):
    dtype, shape, bits = tensor
    return np.array(bits, dtype=object).reshape(shape)


def indices(tensor):
    return np.array([read_bits("i64", b) for b in tensor[2]], dtype=object).reshape(tensor[1])


def picked(places):
    """places(x, indices, shape of the result, attributes): for each element of the result in order,
    a place in x or None."""

    def run(tensors, outputs, attrs):
        (dtype, _, _), (out, shape) = tensors[0], outputs[0]
        x = operand(tensors[0])
        return [
            [
                NOWHERE.get(out, 0) if at is None else copied(dtype, out, x[at])
                for at in places(x, indices(tensors[1]), shape, attrs)
            ]
        ]

    return run


def gather(x, index, shape, attrs):
    axis = attrs.get("axis", 0) % x.ndim
    for place in np.ndindex(*shape):
        i = normalize_index(index[place[axis : axis + index.ndim]], x.shape[axis])
        yield None if i is None else place[:axis] + (i,) + place[axis + index.ndim :]


def along(x, index, place, attrs):
    axis = attrs.get("axis", 0) % x.ndim
    i = normalize_index(index[place], x.shape[axis])
    return None if i is None else place[:axis] + (i,) + place[axis + 1 :]


def gather_elements(x, index, shape, attrs):
    return (along(x, index, place, attrs) for place in np.ndindex(*shape))


def named(x, tuple_, batch):
    at = [normalize_index(i, n) for i, n in zip(tuple_, x.shape[len(batch) :])]
    return None if None in at else batch + tuple(at)


def gather_nd(x, index, shape, attrs):
    b = attrs.get("batch_dims", 0)
    for place in np.ndindex(*shape):
        of = place[: index.ndim - 1]
        slice_ = named(x, index[of], of[:b])
        yield None if slice_ is None else slice_ + place[index.ndim - 1 :]


def minimum(a, b):
    return -maximum(-a, -b) if a == a and b == b else NAN


REAL = [None, add, mul, minimum, maximum]
WHOLE = [None, lambda a, b: a + b, lambda a, b: a * b, min, max]


def scattered(place_of):
    """gather.7 - 9."""

    def run(tensors, outputs, attrs):
        dtype, how = tensors[0][0], attrs.get("reduction", 0)
        result, index, updates = operand(tensors[0]), indices(tensors[1]), operand(tensors[2])
        for place in np.ndindex(*updates.shape):
            at = place_of(result, index, place, attrs)
            if at is None:
                continue
            there, update = read_bits(dtype, result[at]), read_bits(dtype, updates[place])
            if how == 0:
                result[at] = updates[place]
            elif dtype in ("f32", "f64"):
                result[at] = write_bits(dtype, canon(REAL[how](there, update)))
            else:
                result[at] = write_bits(dtype, WHOLE[how](there, update))
        return [list(result.flatten())]

    return run


def behind(x, index, place, attrs):
    at = named(x, index[place[: index.ndim - 1]], ())
    return None if at is None else at + place[index.ndim - 1 :]


ON_BITS = {
    "gather": picked(gather),
    "gather_elements": picked(gather_elements),
    "gather_nd": picked(gather_nd),
    "scatter_elements": scattered(along),
    "scatter_nd": scattered(behind),
}
