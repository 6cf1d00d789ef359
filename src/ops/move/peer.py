import torch as t


def listed(call, name, fallback):
    return [int(a) for a in call.attrs.get(name, fallback)]


def transpose(call, x, y):
    turned = x.permute(listed(call, "perm", range(x.ndim)[::-1]))
    return {"copy_": lambda: y.copy_(turned), "contiguous": lambda: turned.contiguous()}


def slices(call, x, y):
    index = tuple(
        slice(s, s + n * d, d)
        for s, d, n in zip(
            listed(call, "starts", [0] * x.ndim), listed(call, "steps", [1] * x.ndim), y.shape
        )
    )
    return {"copy_": lambda: y.copy_(x[index])}


def padded(call, x, y):
    begins = listed(call, "begins", [0] * x.ndim)
    amounts = [
        a for b, n, m in zip(begins[::-1], x.shape[::-1], y.shape[::-1]) for a in (b, m - n - b)
    ]
    if call.op == "pad":
        return {"constant_pad_nd": lambda: t.ops.aten.constant_pad_nd.out(x, amounts, out=y)}
    if call.op == "pad_wrap":
        return {"repeat": lambda: x.repeat([m // n for n, m in zip(x.shape, y.shape)])}
    mode = {"pad_reflect": "reflect", "pad_edge": "replicate"}[call.op]
    return {mode: lambda: t.nn.functional.pad(x, amounts[:4], mode)}


def torch(call):
    x, (y,) = call.inputs[0], call.outputs
    b = call.attrs.get("blocksize")
    if call.op == "transpose":
        return transpose(call, x, y)
    if call.op == "slice":
        return slices(call, x, y)
    if call.op.startswith("pad"):
        return padded(call, x, y)
    return {
        "expand": lambda: {"copy_": lambda: y.copy_(x.expand(y.shape))},
        "depth_to_space": lambda: {"pixel_shuffle": lambda: t.nn.functional.pixel_shuffle(x, b)},
        "space_to_depth": lambda: {
            "pixel_unshuffle": lambda: t.nn.functional.pixel_unshuffle(x, b)
        },
        "concat": lambda: {"cat": lambda: t.cat(call.inputs, call.attrs["axis"], out=y)},
        "trilu": lambda: {"tril": lambda: t.tril(x, out=y)},
    }.get(call.op, dict)()


def onnxruntime(call):
    import numpy as np

    x, (y,), a = call.inputs[0], call.outputs, call.attrs
    if "bf16" in call.types:
        return {}

    def whole(*numbers):
        return np.array(numbers, np.int64)

    if call.op == "slice":
        starts, steps = listed(call, "starts", [0] * x.ndim), listed(call, "steps", [1] * x.ndim)
        ends = [min(s + n * d, m) for s, n, d, m in zip(starts, y.shape, steps, x.shape)]
        bounds = (whole(*starts), whole(*ends), whole(*range(x.ndim)), whole(*steps))
        return {"Slice": call.node("Slice", 0, *bounds)}
    if call.op.startswith("pad"):
        begins = listed(call, "begins", [0] * x.ndim)
        pads = whole(*begins, *(m - n - b for b, n, m in zip(begins, x.shape, y.shape)))
        mode = {"pad": "constant"}.get(call.op, call.op.removeprefix("pad_"))
        return {"Pad": call.node("Pad", 0, pads, mode=mode)}
    return {
        "transpose": lambda: {
            "Transpose": call.node("Transpose", 0, perm=listed(call, "perm", range(x.ndim)[::-1]))
        },
        "expand": lambda: {"Expand": call.node("Expand", 0, whole(*y.shape))},
        "depth_to_space": lambda: {
            "DepthToSpace": call.node("DepthToSpace", 0, blocksize=a["blocksize"], mode="CRD")
        },
        "space_to_depth": lambda: {
            "SpaceToDepth": call.node("SpaceToDepth", 0, blocksize=a["blocksize"])
        },
        "concat": lambda: {"Concat": call.node("Concat", 0, 1, axis=a["axis"])},
        "trilu": lambda: {"Trilu": call.node("Trilu", 0, upper=a.get("upper", 1))},
    }.get(call.op, dict)()
