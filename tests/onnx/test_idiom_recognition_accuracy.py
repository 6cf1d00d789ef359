"""How far plain torch is from the reproducible operations: what torch rounds in its own order stays
within the bounds stated here, for single operations and for whole models converted with
requires_reproducibility=False. Nobody promises its bytes."""

import io
import sys

import decomposed_spellings as spelled
import invar
import numpy as np
import pytest
import torch
from conftest import ROOT
from decomposed_spellings import OPSET
from invar import CompileOptions
from onnx import numpy_helper, parser
from test_idiom_recognition import BYTES, SUMS_OF_FEW_BITS

sys.path.insert(0, str(ROOT / "tools/models"))
import random_weight_models  # noqa: E402

UNIT = {
    torch.float32: 2.0**-24,
    torch.float64: 2.0**-53,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
# In units of the last place, by what fixes the reproducible bits. One rounded function: of the
# number itself.
FUNCTIONS = {"correctly-rounded": 6, "function-1": 6, "sequence-1": 6, "graph-1": 12, "ieee": 6}
# Sums of up to 2^14 terms, in another order: of the largest number of the result, which may
# be one that is small beside its terms.
SUMS = {"row-1": 128, "fp32-1": 512, "attention-1": 64, "linear-attention-1": 64, "resize-1": 64}
OWN = {
    "batchnorm": 8,
    # torch makes x f + (b - m f) of it: where all elements are equal, f is 1 / sqrt(epsilon) and
    # x f goes away.
    "groupnorm": 1024,
    **dict.fromkeys(("cospi", "sinpi"), 16),  # torch rounds pi x
    "softmax": 256,  # across memory torch adds one by one
}
FLOATS = {
    "reduce_log_sum": spelled.positive,
    # Updates of the delta rule by long keys grow without bound.
    **dict.fromkeys(("gated_delta_rule", "gated_linear_attention"), spelled.small),
}
# Gradients cancel; tests/package/test_gradients_kernels.py measures them on what they are made for.
GRADIENTS = {op for op in OPSET if "_backward" in op} - {"conv_backward_weight"}
ROUNDED = sorted(
    (set(OPSET) - set(BYTES) - GRADIENTS - {"attention"}) | set(SUMS_OF_FEW_BITS) - {"rope"}
)


def farthest(got, want, floor):
    """The largest difference in units of the last place of the number, or of `floor` where that is
    more; NaN and infinities agree."""
    if not got.is_floating_point():
        return 0.0 if torch.equal(got, want) else float("inf")
    unit = UNIT[got.dtype]
    got, want = got.double(), want.double()
    finite = want.isfinite()
    assert torch.equal(got.isnan(), want.isnan()) and torch.equal(
        got[~finite & ~want.isnan()], want[~finite & ~want.isnan()]
    )
    got, want = got[finite], want[finite]
    apart = (got - want).abs() / (want.abs().clamp(min=max(floor, 2.0**-100)) * unit)
    return float(apart.max()) if apart.numel() else 0.0


@pytest.mark.parametrize("op", ROUNDED)
def test_operations(op):
    rule = OPSET[op].numerics
    bound = OWN.get(op) or FUNCTIONS.get(rule) or SUMS[rule]
    whole = rule in SUMS or op in OWN
    for case, text, got, want in spelled.pairs(
        op, FLOATS.get(op, spelled.ordinary), every=3 if op.startswith("conv") else 1
    ):
        finite = want[want.isfinite()]
        floor = (
            float(finite.abs().max())
            if whole and finite.numel()
            else 1.0
            if rule == "graph-1"
            else 0.0
        )
        assert farthest(got, want, floor) <= bound, (str(case), text)


def attended(case, q, k, v, *more):
    """spec/attention.md without memory, in double precision, head by head and query by query."""
    a = {"causal": 1, "left": -1, "right": -1, "first": 0, "softcap": 0, **case.attributes}
    names = [n for n in ("mask", "sinks", "lengths", "slopes") if a.get(n)]
    given = dict(zip(names, (m.numpy() for m in more), strict=True))
    by_heads = lambda x, h: (
        (x if a.get("heads_first") else x.unflatten(-1, (h, -1)).transpose(1, 2)).double().numpy()
    )
    q, k, v = by_heads(q, a["q_heads"]), by_heads(k, a["kv_heads"]), by_heads(v, a["kv_heads"])
    (batch, heads, queries, _), keys = q.shape, k.shape[2]
    y = np.zeros((batch, heads, queries, v.shape[3]))
    j = np.arange(keys)
    for b, h, i in np.ndindex(batch, heads, queries):
        n = min(max(int(given["lengths"][b]), 0), keys) if "lengths" in given else keys
        p = n - queries + i if "lengths" in given else i
        seen = j < n
        seen &= ~(bool(a["causal"]) & (j > p))
        seen &= ~((a["right"] >= 0) & (j > p + a["right"]))
        seen &= ~((a["left"] >= 0) & (j < p - a["left"]) & (j >= a["first"]))
        s = k[b, h // (heads // a["kv_heads"])] @ q[b, h, i] * a["scale"]
        s = a["softcap"] * np.tanh(s / a["softcap"]) if a["softcap"] else s
        if "slopes" in given:
            slope, far = given["slopes"][h].astype(np.float64), given["slopes"].shape[-1] // 2
            table = given["slopes"].ndim == 2  # of biases by distance
            s = s + (slope[np.clip(j - p, -far, far) + far] if table else slope * (j - p))
        if "mask" in given:
            mask = np.broadcast_to(given["mask"], (batch, heads, queries, given["mask"].shape[-1]))[
                b, h, i
            ][:keys]
            seen[len(mask) :] = False
            if mask.dtype == bool:
                seen[: len(mask)] &= mask
            else:
                s[: len(mask)] += mask
        s = np.where(seen, s, -np.inf)
        sink = float(given["sinks"][h]) if "sinks" in given else -np.inf
        most = max(sink, s.max(initial=-np.inf))
        if most > -np.inf:
            weight = np.exp(s - most)
            y[b, h, i] = (
                weight @ v[b, h // (heads // a["kv_heads"])] / (weight.sum() + np.exp(sink - most))
            )
    return torch.from_numpy(
        y if a.get("heads_first") else y.swapaxes(1, 2).reshape(batch, queries, -1)
    )


def test_attention():
    for case, text, operands in spelled.written("attention", every=2):
        want = attended(case, *operands)
        bound = 64
        if case.attributes.get("slopes"):  # a score and its bias err by half a unit each
            bound += 2 * float(operands[-1].abs().max()) * operands[1].shape[-2]
        largest = float(want.abs().max()) if want.numel() else 1.0
        got = farthest(spelled.evaluated(text, operands), want, largest)
        assert got <= bound, (str(case), text)


MODELS = {
    "mlp": """(float[n, 32] x) => (float[n, c] y)
        { a = Gemm<transB=1>(x, w1, b1)  g = Gelu<approximate="tanh">(a)  d = Gemm(g, w2)  s = LayerNormalization<axis=-1>(d, w3, b3)
          y = LogSoftmax<axis=-1>(s) }""",
    "convolutions": """(float[n, 3, 16, 18] x) => (float[n, c] y, int64[n, 1] best)
        { a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, k1, kb1)  r = Relu(a)
          m = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(r)
          t = ConvTranspose<strides=[2,2], pads=[0,1,1,0], output_padding=[1,0]>(m, k2)  h = HardSwish(t)
          p = AveragePool<kernel_shape=[3,2], strides=[2,1], pads=[1,0,0,1]>(h)  i = InstanceNormalization(p, w4, b4)
          g = GlobalAveragePool(i)  f = Flatten(g)  y = Sigmoid(f)  best = ArgMax<axis=1>(y) }""",
    "attention": """(float[n, t, 32] x, bool[n, 1, 1, t] seen) => (float[n, t, 32] y)
        { q = MatMul(x, q1)  k = MatMul(x, k3)  v = MatMul(x, v1)
          a = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v, seen)  s = Add(a, x)  y = RMSNormalization(s, w5) }""",
    "moves": """(float[n, 6, 5] x, int64[n, 2] ids) => (float[n, 2, 7] y, int64[n, 6, 3] order, float[n, 9, 4] z)
        { e = Gather(table, ids)  s = Slice(x, starts, ends, axes, steps)  p = Pad<mode="reflect">(s, amounts)
          values, order = TopK<axis=-1>(p, three)
          t = Transpose<perm=[0,2,1]>(p)
          z = Resize<mode="linear", coordinate_transformation_mode="align_corners", axes=[2,1]>(t, , , sizes)
          c = CumSum<reverse=1>(e, last)  l = Less(c, zero)  n1 = Neg(c)  y = Where(l, n1, c) }""",
    "dimensions": """(float[n, t, 4] x, float[u, 4] z) => (float[m, 4] y, float[n, o, 4] last, float[n, d, 4] twice)
        { a = Concat<axis=1>(x, x)  flat = Reshape(x, rows)  y = Tanh(flat)  last0 = Slice(a, one, far, one, one)  last = Neg(last0)
          twice = Sigmoid(a) }""",
    "quantized": """(float[n, 24] x) => (float[n, 8] y)
        { q = QuantizeLinear(x, scale, zero8)  d = DequantizeLinear(q, scale, zero8)  wd = DequantizeLinear<axis=1>(wq, wscale)
          y = MatMul(d, wd) }""",
    "reductions": """(float[n, 4, 6] x) => (float[n, 1, 6] a, float[4] b, float[n, 4] c, float[n, 4, 6] d)
        { a = ReduceMean(x, one)  b = ReduceLogSumExp<keepdims=0>(x, ends02)  c = ReduceL2<keepdims=0>(x, last1)  e = ReduceMax(x, last1)
          f = Sub(x, e)  g = Erf(f)  h = Clip(g, low)  d = Mul(h, h) }""",
}
SHAPES = {
    "w1": (48, 32),
    "b1": (48,),
    "w2": (48, 20),
    "w3": (20,),
    "b3": (20,),
    "k1": (8, 3, 3, 3),
    "kb1": (8,),
    "k2": (8, 5, 3, 3),
    "w4": (5,),
    "b4": (5,),
    "q1": (32, 32),
    "k3": (32, 16),
    "v1": (32, 16),
    "w5": (32,),
    "table": (11, 7),
}
RANDOM = np.random.default_rng(5)
LISTS = dict(
    starts=[4, 0],
    ends=[-100, 5],
    axes=[1, 2],
    steps=[-1, 2],
    amounts=[0, 0, 2, 0, 1, 1],
    three=[3],
    sizes=[4, 9],
    rows=[-1, 4],
    far=[2**62],
    last=2,
    one=[1],
    ends02=[0, 2],
    last1=[-1],
)
CONSTANTS = {
    name: RANDOM.standard_normal(shape).astype("f") / np.sqrt(shape[0]).astype("f")
    for name, shape in SHAPES.items()
} | {
    **{name: np.array(value) for name, value in LISTS.items()},
    "zero": np.float32(0),
    "low": np.float32(-0.5),
    "scale": np.float32(0.05),
    "zero8": np.uint8(120),
    "wq": RANDOM.integers(-128, 128, (24, 8)).astype(np.int8),
    "wscale": RANDOM.uniform(0.01, 0.1, 8).astype("f"),
}


def model(name):
    made = parser.parse_model(f'<ir_version: 11, opset_import: ["": 23]> {name} {MODELS[name]}')
    used = {i for node in made.graph.node for i in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in CONSTANTS.items() if k in used
    )
    return made


def fed(module, n):
    random = np.random.default_rng(n)
    sizes = {"n": n, "t": 9, "u": 2}
    of = {
        "f32": lambda shape: random.standard_normal(shape).astype("f"),
        "i64": lambda shape: random.integers(-11, 11, shape),
        "bool": lambda shape: random.integers(0, 4, shape) > 0,
    }
    return {
        name: of[dtype]([sizes.get(d, d) for d in dims])
        for name, (dtype, dims) in module.INPUTS.items()
    }


def results(module, inputs):
    got = module(*map(torch.from_numpy, inputs.values()))
    return got if isinstance(got, tuple) else (got,)


def compared(module, program, inputs):
    want = program.run(inputs)
    for got, (output, expected) in zip(results(module, inputs), want.items(), strict=True):
        expected = torch.from_numpy(np.asarray(expected))
        assert got.dtype == expected.dtype and got.shape == expected.shape, output
        if not got.is_floating_point():
            assert torch.equal(got, expected), output
        else:
            assert farthest(got, expected, float(expected.abs().max())) <= 256, output


PLAIN = CompileOptions(requires_reproducibility=False)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    made = model(name)
    module = invar.convert(
        made, CompileOptions(artifacts_dir=str(tmp_path), requires_reproducibility=False)
    )
    text = (tmp_path / "module.py").read_text()
    assert "primitives." not in text and ("torch." in text or "functional." in text)
    for n in (1, 4, 3):
        compared(module, invar.compile(made), fed(module, n))


@pytest.mark.parametrize("name", random_weight_models.SIZES)
def test_architectures(name, tmp_path):
    path = random_weight_models.make(tmp_path / name, name, "small", batches=(1, 3))
    module, program = invar.convert(path, PLAIN), invar.compile(path)
    for batch in (1, 3):
        compared(
            module,
            program,
            {i: np.load(tmp_path / name / str(batch) / f"{i}.npy") for i in module.INPUTS},
        )


def test_infinite_attributes_are_written_as_python_reads_them():
    made = model("reductions")  # Clip without a maximum
    module = invar.convert(made)
    inputs = fed(module, 2)
    assert [t.numpy().tobytes() for t in results(module, inputs)] == [
        v.tobytes() for v in invar.compile(made).run(inputs).values()
    ]


@pytest.mark.parametrize("start", [1, 3, -1, -2])
def test_slices_of_nothing_start_anywhere(start):
    made = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]> g (float[n, t] x) => (float[n, m] y)
        <int64[1] start = {{{start}}}, int64[1] far = {{9223372036854775807}}, int64[1] one = {{1}}> {{ y = Slice(x, start, far, one) }}""")
    module, program = invar.convert(made, PLAIN), invar.compile(made)
    for t in (0, 1, 2, 5):
        x = np.arange(3 * t, dtype=np.float32).reshape(3, t)
        for found in (module(torch.from_numpy(x)).numpy(), program.run(x=x)["y"]):
            assert found.shape == x[:, start:].shape and found.tobytes() == x[:, start:].tobytes()


def test_modules_are_modules():
    module = invar.convert(model("mlp"), PLAIN)
    inputs = fed(module, 3)
    (want,) = results(module, inputs)
    assert set(module.state_dict()) == {"w1", "b1", "w2", "w3", "b3"}
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert torch.equal(results(again, inputs)[0], want)
    with torch.no_grad():
        again.w1.zero_()
    again.load_state_dict(module.state_dict())
    assert torch.equal(results(again, inputs)[0], want)
    on_meta = again.to("meta")
    assert on_meta(torch.empty(5, 32, device="meta")).shape == (5, 20)
    # Other types of numbers: torch refuses operands of two types, and the module inputs of another
    # than the model's.
    double = invar.convert(model("mlp"), PLAIN).to(torch.float64)
    for x in (torch.zeros(3, 32), torch.zeros(3, 32, dtype=torch.float64)):
        with pytest.raises((RuntimeError, invar.BadInput), match="(?i)dtype|float64"):
            double(x)
