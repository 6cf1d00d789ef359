"""The operations of gradients (src/ops: rmsnorm, layernorm, softmax, elementwise, and the rules of
groupnorm and batchnorm): against torch in binary64, against compositions of other operations byte
for byte, and on every instruction set of this machine. Their bits on all cases are tested by
invar_conformance."""

import pytest
from conftest import BUILD, cpu_isas

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import torch  # noqa: E402
from invar import _native, rooms  # noqa: E402
from invar import primitives as p  # noqa: E402
from torch.nn import functional  # noqa: E402

EPSILON = 1e-5
SHAPES = [(3, 1), (4, 255), (5, 256), (7, 257), (300, 40), (2, 3, 2049), (4100, 8)]


def random(*shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return scale * torch.randn(shape, generator=generator)


def wanting(*tensors):
    return [x.detach().clone().requires_grad_() for x in tensors]


def error(got, expected):
    """The largest difference, relative to the largest element expected, or to 0.1 where all are
    smaller: gradients of 0 are differences of terms of the size of 1."""
    assert got.shape == expected.shape
    size = max(expected.abs().max().item(), 0.1)
    return (got.double() - expected).abs().max().item() / size


def same_bits(a, b):
    return a.shape == b.shape and torch.equal(a.view(torch.int32), b.view(torch.int32))


def gradients(function, operands, grad):
    operands = wanting(*operands)
    function(*operands).backward(grad)
    return [x.grad for x in operands]


def rms_norm(x, w):
    return p.rmsnorm(x, w, epsilon=EPSILON)


def layer_norm(x, w, b):
    return p.layernorm(x, w, b, epsilon=EPSILON)


# The sum of a row of n terms has an error of about log2(n) roundings.
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_norms_against_binary64(name, shape):
    n = shape[-1]
    x, grad = random(*shape, scale=3.0), random(*shape, seed=1)
    operands = [x, 1 + random(n, seed=2, scale=0.3)]
    if name == "layer_norm":
        operands.append(random(n, seed=3))
    theirs = {
        "rms_norm": lambda x, w: functional.rms_norm(x, (n,), w, EPSILON),
        "layer_norm": lambda x, w, b: functional.layer_norm(x, (n,), w, b, EPSILON),
    }[name]
    got = gradients(globals()[name], operands, grad)
    expected = gradients(theirs, [x.double() for x in operands], grad.double())
    assert max(error(a, b) for a, b in zip(got, expected)) < 2e-6


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_against_binary64(name, shape, axis):
    x, grad = random(*shape, scale=4.0), random(*shape, seed=1)
    (got,) = gradients(lambda x: getattr(p, name)(x, axis=axis), [x], grad)
    (expected,) = gradients(lambda x: getattr(torch, name)(x, axis), [x.double()], grad.double())
    assert error(got, expected) < 2e-6


def exact_gelu(x):  # torch's own is 0 where 1 + erf is
    return x * torch.special.erfc(-x / 2**0.5) / 2


ACTIVATIONS = {
    "silu_backward": functional.silu,
    "gelu_backward": exact_gelu,
    "gelu_tanh_backward": lambda x: functional.gelu(x, approximate="tanh"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_the_operand_against_binary64(name):
    x = torch.cat([torch.linspace(-30, 30, 20001), random(1000, scale=1e-3)])
    if name == "gelu_tanh_backward":  # below, torch's 1 + tanh cancels even in binary64
        x = x[x > -4]
    got = getattr(p, name)(torch.ones_like(x), x)
    (expected,) = gradients(ACTIVATIONS[name], [x.double()], torch.ones_like(x).double())
    assert (got.double() - expected).abs().max() < 4e-7
    # Far out the derivatives are small, and right relative to their size.
    tail = (x < -3) & (expected.abs() > 2**-100)
    relative = ((got.double() - expected) / expected).abs()[tail].max()
    assert relative < 4e-6


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu"])
def test_activations_of_the_result_against_binary64(name):
    x = torch.linspace(-8, 8, 20001).double()
    y, grad = getattr(torch, name)(x).float(), random(20001)
    expected = {"sigmoid": y.double() * (1 - y.double()), "tanh": 1 - y.double() ** 2}
    expected = expected.get(name, (y > 0).double()) * grad.double()
    got = getattr(p, f"{name}_backward")(grad, y).double()
    assert ((got - expected) / expected).abs().nan_to_num(0).max() < 4e-7


def test_limits_of_gelu():
    far = torch.tensor([float("inf"), 3e38, 21.0, -21.0, -3e38, -float("inf")])
    for name in ("gelu_backward", "gelu_tanh_backward"):
        got = getattr(p, name)(torch.ones(6), far)
        assert got.tolist() == [1, 1, 1, 0, 0, 0]
        assert getattr(p, name)(torch.ones(1), torch.tensor([float("nan")])).isnan().all()


# rmsnorm.8, layernorm.8: the fused sums over rows are those of the composition.
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["rmsnorm", "layernorm"])
def test_weight_gradients_are_those_of_the_composition(name, shape):
    x, grad = random(*shape, scale=2.0), random(*shape, seed=1)
    for axis in range(1, len(shape)):
        ones = torch.ones(shape[axis:])
        normalized = getattr(p, name)(x, ones, epsilon=EPSILON)
        composed = p.reduce_sum(p.mul(grad, normalized), axes=list(range(axis)), keepdims=0)
        fused = getattr(p, f"{name}_backward_weight")(grad, x, axis=axis, epsilon=EPSILON)
        assert same_bits(fused, composed)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_weights_are_widened(dtype):
    x, grad, w = random(5, 300), random(5, 300, seed=1), random(300, seed=2).to(dtype)
    for name in ("rmsnorm_backward", "layernorm_backward"):
        narrow = getattr(p, name)(grad, x, w, epsilon=EPSILON)
        assert same_bits(narrow, getattr(p, name)(grad, x, w.float(), epsilon=EPSILON))


CALLS = {
    "rmsnorm_backward": lambda g, x, w, isa: p.rmsnorm_backward(g, x, w, epsilon=EPSILON, isa=isa),
    "rmsnorm_backward_weight": lambda g, x, w, isa: p.rmsnorm_backward_weight(
        g, x, axis=1, epsilon=EPSILON, isa=isa
    ),
    "layernorm_backward": lambda g, x, w, isa: p.layernorm_backward(
        g, x, w, epsilon=EPSILON, isa=isa
    ),
    "layernorm_backward_weight": lambda g, x, w, isa: p.layernorm_backward_weight(
        g, x, axis=1, epsilon=EPSILON, isa=isa
    ),
    "softmax_backward": lambda g, x, w, isa: p.softmax_backward(g, x, axis=1, isa=isa),
    "log_softmax_backward": lambda g, x, w, isa: p.log_softmax_backward(g, x, axis=0, isa=isa),
    **{
        name: lambda g, x, w, isa, name=name: p.call(name, g, x, isa=isa)
        for name in (*ACTIVATIONS, "relu_backward", "sigmoid_backward", "tanh_backward")
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_every_instruction_set_has_the_same_bits(name):
    g, x, w = random(70, 1030), random(70, 1030, seed=1, scale=3.0), random(1030, seed=2)
    best = CALLS[name](g, x, w, "")
    for isa in cpu_isas():
        assert same_bits(best, CALLS[name](g, x, w, isa)), isa


# torch.cc of the rooms: what a module's source says of these operations.
SPELLED = {
    "rmsnorm_backward": (3, {"epsilon": EPSILON}),
    "rmsnorm_backward_weight": (2, {"axis": 1, "epsilon": EPSILON}),
    "layernorm_backward": (3, {"epsilon": EPSILON}),
    "layernorm_backward_weight": (2, {"axis": 1, "epsilon": EPSILON}),
    "softmax_backward": (2, {"axis": 1}),
    "log_softmax_backward": (2, {"axis": 1}),
    **dict.fromkeys(CALLS.keys() & {*ACTIVATIONS, "relu_backward", "sigmoid_backward"}, (2, {})),
    "tanh_backward": (2, {}),
}


@pytest.mark.parametrize("name", SPELLED)
def test_spellings_in_torch(name):
    count, attributes = SPELLED[name]
    y = -random(5, 40, seed=1).abs()  # a result of log_softmax is not positive
    operands = [random(5, 40), y, random(40, seed=2)][:count]
    expected = p.call(name, *operands, **attributes)
    types = [("f32", list(x.shape)) for x in operands]
    text = _native.torch_expression(name, attributes, types, ("f32", list(expected.shape)))
    text = text.format(*"abc")
    values = dict(zip("abc", operands), torch=torch, functional=functional, rooms=rooms)
    assert error(expected, eval(text, values).double()) < 2e-6


# Gradients of gradients, of a function of both that no symmetry hides.
SECOND = {
    "rms_norm": (lambda x, w: functional.rms_norm(x, (6,), w, EPSILON), rms_norm, 2),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (6,), w, b, EPSILON), layer_norm, 3),
    "softmax": (lambda x: torch.softmax(x, 1), lambda x: p.softmax(x, axis=1), 1),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), lambda x: p.log_softmax(x, axis=1), 1),
    "sigmoid": (torch.sigmoid, lambda x: p.sigmoid(x), 1),
    "tanh": (torch.tanh, lambda x: p.tanh(x), 1),
    "relu": (torch.relu, lambda x: p.relu(x), 1),
    "silu": (functional.silu, lambda x: p.silu(x), 1),
    "gelu": (functional.gelu, lambda x: p.gelu(x), 1),
    "gelu_tanh": (ACTIVATIONS["gelu_tanh_backward"], lambda x: p.gelu_tanh(x), 1),
}


def twice(function, operands, grad, sums):
    operands, (grad,) = wanting(*operands), wanting(grad)
    first = torch.autograd.grad(function(*operands), operands, grad, create_graph=True)
    return torch.autograd.grad(first, [*operands[:2], grad], sums, allow_unused=True)


@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients_against_binary64(name):
    theirs, ours, count = SECOND[name]
    operands = [random(4, 6, scale=2.0), 1 + random(6, seed=2, scale=0.3), random(6, seed=3)][
        :count
    ]
    grad = random(4, 6, seed=4)
    sums = [random(*x.shape, seed=5 + i) for i, x in enumerate(operands)]
    got = twice(ours, operands, grad, sums)
    expected = twice(
        theirs, [x.double() for x in operands], grad.double(), [s.double() for s in sums]
    )
    for a, b in zip(got, expected):
        assert (a is None) == (b is None)
        assert a is None or error(a, b) < 5e-6


def test_groupnorm_against_binary64():
    x, grad, w, b = random(3, 6, 5, 7), random(3, 6, 5, 7, seed=1), random(6, seed=2), random(6)
    got = gradients(
        lambda x, w, b: p.groupnorm(x, w, b, groups=3, epsilon=EPSILON), [x, w, b], grad
    )
    expected = gradients(
        lambda x, w, b: functional.group_norm(x, 3, w, b, EPSILON),
        [x.double(), w.double(), b.double()],
        grad.double(),
    )
    assert max(error(a, e) for a, e in zip(got, expected)) < 2e-6


def test_batchnorm_against_binary64():
    x, grad = random(4, 6, 5), random(4, 6, 5, seed=1)
    operands = [x, random(6), random(6, seed=2), random(6, seed=3), random(6, seed=4).abs() + 0.1]

    def theirs(x, w, b, m, v):
        w, b, m, v = (t.reshape(6, 1) for t in (w, b, m, v))
        return (x - m) / torch.sqrt(v + EPSILON) * w + b

    got = gradients(lambda *t: p.batchnorm(*t, epsilon=EPSILON), operands, grad)
    expected = gradients(theirs, [t.double() for t in operands], grad.double())
    assert max(error(a, e) for a, e in zip(got, expected)) < 2e-6


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: p.rmsnorm_backward(g, g[:1], g[0], epsilon=1.0), "gradient"),
        (lambda g: p.layernorm_backward(g, g, g[0, :2], epsilon=1.0), "scale"),
        (lambda g: p.rmsnorm_backward_weight(g, g, axis=2, epsilon=1.0), "axis"),
        (lambda g: p.softmax_backward(g, g[:1], axis=1), "gradient"),
        (lambda g: p.sigmoid_backward(g, g[:2]), "3"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(Exception, match=said) as refused:
        call(random(3, 4))
    assert type(refused.value).__module__.startswith("invar")
