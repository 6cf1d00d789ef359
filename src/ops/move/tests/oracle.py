"""The outputs of this room's operations from spec/ops/move.md, without the C++ code
(tests/conformance/oracle.py). NumPy moves bits as unsigned integers and knows nothing of what they
mean."""

import numpy as np
from oracle import canon, fma, read_bits, write_bits


def listed(attrs, name, fallback):
    return [int(a) for a in str(attrs[name]).split(",") if a] if name in attrs else fallback


def arrays(tensors):
    return [np.array(bits, dtype=np.uint64).reshape(shape) for _, shape, bits in tensors]


def moved(f):
    """f(arrays of bits, shape of the result, attributes) -> an array of bits."""

    def run(tensors, outputs, attrs):
        result = np.asarray(f(arrays(tensors), tuple(outputs[0][1]), attrs))
        assert result.shape == tuple(outputs[0][1]), (result.shape, outputs[0][1])
        return [[int(b) for b in result.flatten()]]

    return run


def transpose(x, out, attrs):
    return np.transpose(x[0], listed(attrs, "perm", None))


def take(x, index):
    """One list of indices for each axis."""
    return x[np.ix_(*index)] if index else x


def sliced(x, out, attrs):
    starts, steps = (
        listed(attrs, "starts", [0] * x[0].ndim),
        listed(attrs, "steps", [1] * x[0].ndim),
    )
    return take(
        x[0],
        [
            [(s + n if s < 0 else s) + i * t for i in range(m)]
            for s, t, n, m in zip(starts, steps, x[0].shape, out)
        ],
    )


def depth_to_space(x, out, attrs):
    n, c, h, w = x[0].shape
    b = attrs["blocksize"]
    if attrs.get("crd"):
        return x[0].reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(out)
    return x[0].reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(out)


def space_to_depth(x, out, attrs):
    n, c, h, w = x[0].shape
    b = attrs["blocksize"]
    return x[0].reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(out)


def bounce(j, n):
    """A walker between the first and the last of n places."""
    at, step = 0, 1 if j > 0 else -1
    for _ in range(abs(j)):
        if n > 1 and not 0 <= at + step < n:
            step = -step
        at += step if n > 1 else 0
    return at


def padded(rule):
    def run(x, out, attrs):
        begins = listed(attrs, "begins", [0] * x[0].ndim)
        return take(
            x[0], [[rule(i - b, n) for i in range(m)] for b, n, m in zip(begins, x[0].shape, out)]
        )

    return run


def pad(x, out, attrs):
    begins = listed(attrs, "begins", [0] * x[0].ndim)
    result = np.full(out, int(x[1].flatten()[0]) if len(x) > 1 else 0, dtype=np.uint64)
    for place in np.ndindex(*out):
        at = tuple(i - b for i, b in zip(place, begins))
        if all(0 <= i < n for i, n in zip(at, x[0].shape)):
            result[place] = x[0][at]
    return result


def trilu(x, out, attrs):
    i, j = np.indices(out[-2:])
    above = j - i - attrs.get("k", 0)
    return np.where(above >= 0 if attrs.get("upper", 1) else above <= 0, x[0], np.uint64(0))


def reverse_sequence(x, out, attrs):
    result, time = x[0].copy(), attrs.get("time_axis", 0)
    for s, length in enumerate(x[1]):
        length = max(0, min(read_bits("i64", int(length)), out[time]))
        row = result.swapaxes(0, time)[:, s]
        row[:length] = row[:length][::-1].copy()
    return result


def one_hot(tensors, outputs, attrs):
    index, values = tensors[0], tensors[1][2]
    out, axis = outputs[0][1], attrs.get("axis", 0)
    which = np.array([read_bits(index[0], b) for b in index[2]]).reshape(index[1])
    result = np.full(out, values[0], dtype=np.uint64)
    for place in np.ndindex(*index[1]):
        i = int(which[place])
        if -out[axis] <= i < out[axis]:
            result[place[:axis] + (i % out[axis],) + place[axis:]] = values[1]
    return [[int(b) for b in result.flatten()]]


def iota(tensors, outputs, attrs):
    dtype, (n,) = outputs[0]
    start, delta = (read_bits(t, bits[0]) for t, _, bits in tensors)
    if dtype == "f32":
        return [[write_bits(dtype, canon(fma(float(i), delta, start))) for i in range(n)]]
    return [[write_bits(dtype, start + i * delta) for i in range(n)]]


ON_BITS = {
    "transpose": moved(transpose),
    "slice": moved(sliced),
    "expand": moved(lambda x, out, attrs: np.broadcast_to(x[0], out)),
    "depth_to_space": moved(depth_to_space),
    "space_to_depth": moved(space_to_depth),
    "pad": moved(pad),
    "pad_edge": moved(padded(lambda j, n: min(max(j, 0), n - 1))),
    "pad_reflect": moved(padded(bounce)),
    "pad_wrap": moved(padded(lambda j, n: j % n)),
    "concat": moved(lambda x, out, attrs: np.concatenate(x, attrs["axis"])),
    "trilu": moved(trilu),
    "reverse_sequence": moved(reverse_sequence),
    "one_hot": one_hot,
    "iota": iota,
}
