import torch as t


def torch(call):
    return {
        "matmul": matmul,
        "matmul_exact16": matmul_exact16,
        "grouped_matmul": grouped_matmul,
        "grouped_matmul_exact16": grouped_matmul,
        "matmul_integer": matmul_integer,
        "matmul_nbits": matmul_nbits,
    }[call.op](call)


def matmul(call):
    (a, b), constant = call.inputs, call.constant[1]
    weight = b if call.attrs.get("trans_b") else b.mT  # [N, K]
    wide = weight.float()
    y = call.outputs[0]
    ways = {"matmul": lambda: t.matmul(a, wide.mT, out=y)}  # MKL
    if constant and a.dim() == 2:
        dense = wide.contiguous()
        ways["linear"] = lambda: t.nn.functional.linear(a, dense)
        if (
            call.gpu and a.shape[0] > 64
        ):  # beyond that the tensor cores' fewer bits decide, not the weights' bytes
            return ways
        if not call.gpu:
            packed = t.ops.mkldnn._reorder_linear_weight(dense, None)
            ways["linear, oneDNN, packed"] = lambda: t.ops.mkldnn._linear_pointwise(
                a, packed, None, "none", [], ""
            )
        if weight.dtype != t.float32:
            half = a.to(
                weight.dtype
            )  # fewer bits everywhere: what a decoder in that type would run
            ways[f"linear {weight.dtype}".replace("torch.", "")] = lambda: t.nn.functional.linear(
                half, weight
            )
    return ways


# On a GPU the weights' own type, which tensor cores multiply; f32 for comparison.
def matmul_exact16(call):
    (a, b), trans_b = call.inputs, call.attrs.get("trans_b")
    weight = b if trans_b else b.mT  # [N, K]
    if call.gpu and b.dtype != t.float32:
        half = a.to(b.dtype)
        name = f"linear {b.dtype}".replace("torch.", "")
        return {name: lambda: t.nn.functional.linear(half, weight)}
    dense = weight.float().contiguous()
    return {"linear": lambda: t.nn.functional.linear(a, dense)}


# A product for each expert that is chosen; a grouped one of rows that are sorted before.
def grouped_matmul(call):
    (a, index, b), n = call.inputs[:3], call.outputs[0].shape[-1]
    rows, chosen = a.expand(*index.shape, -1).reshape(-1, a.shape[-1]), index.flatten()
    wide = b.float()

    def each():
        y = a.new_empty(len(chosen), n)
        for g in chosen.unique().tolist():
            at = (chosen == g).nonzero()[:, 0]
            y[at] = t.nn.functional.linear(rows[at], wide[g])
        return y

    ways = {"linear of each matrix": each}
    if call.gpu and b.dtype == t.bfloat16:
        x = rows[chosen.argsort()].bfloat16()
        ends = t.bincount(chosen, minlength=len(b)).cumsum(0).int()
        ways["_grouped_mm bfloat16, sorted"] = lambda: t._grouped_mm(x, b.mT, ends)
    return ways


# A library that packs b for one type of a: u8 by i8 through a quantised linear, i8 by i8 as they
# are, f32 for comparison.
def matmul_integer(call):
    a, b = call.inputs[:2]
    x, w = a.float(), b.float().mT.contiguous()
    ways = {"linear of f32": lambda: t.nn.functional.linear(x, w)}
    if a.dtype == t.int8 and a.shape[0] > 16:
        ways["_int_mm"] = lambda: t._int_mm(a, b)
    if a.dtype == t.uint8 and not call.gpu:
        q = t.quantize_per_tensor(x, 1.0, 0, t.quint8)
        packed = t.ops.quantized.linear_prepack(t.quantize_per_tensor(w, 1.0, 0, t.qint8), None)
        ways["quantized.linear"] = lambda: t.ops.quantized.linear(q, packed, 1.0, 0)
    return ways


# The same weights, of other values: dequantised before, and by the library's products of f32 with
# packed integers.
def matmul_nbits(call):
    a, b, scales = call.inputs[:3]
    k, n, groups = (
        a.shape[-1],
        call.outputs[0].shape[-1],
        max(1, scales.numel() // call.outputs[0].shape[-1]),
    )
    dense = t.randn(n, k)
    ways = {"linear of dequantised": lambda: t.nn.functional.linear(a, dense)}
    if call.gpu:
        return ways
    if call.attrs.get("bits", 8) == 8:
        q, s = t.randint(-128, 128, (n, k), dtype=t.int8), t.randn(n)
        ways["_weight_int8pack_mm"] = lambda: t.ops.aten._weight_int8pack_mm(a, q, s)
    else:
        q = t.ops.aten._convert_weight_to_int4pack_for_cpu(
            t.randint(0, 16, (n, k), dtype=t.int32), 1
        )
        s = t.randn(groups, n, 2)
        ways["_weight_int4pack_mm_for_cpu"] = lambda: t.ops.aten._weight_int4pack_mm_for_cpu(
            a, q, k // groups, s
        )
    return ways


def onnxruntime(call):
    a, turned = call.inputs[0], int(call.attrs.get("trans_b", 0))
    if call.op in ("matmul", "matmul_exact16"):
        if a.ndim == 2:
            return {"Gemm": call.node("Gemm", 0, 1, transB=turned)}
        return {} if turned else {"MatMul": call.node("MatMul", 0, 1)}
    if call.op == "matmul_integer":
        return {"MatMulInteger": call.node("MatMulInteger", *range(len(call.inputs)))}
    bits = call.attrs.get("bits", 8)
    if call.op != "matmul_nbits" or bits != 4 or call.inputs[1].ndim != 3:
        return {}
    sizes = {"K": a.shape[1], "N": call.inputs[1].shape[0], "block_size": call.attrs["block"]}
    operands = range(len(call.inputs))
    node = call.node("MatMulNBits", *operands, domain="com.microsoft", bits=bits, **sizes)
    return {"MatMulNBits": node}
