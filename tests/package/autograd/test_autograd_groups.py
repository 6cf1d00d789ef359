"""Groups of operations (primitives.group): the bits of single calls, on the host and, where there
is one, on a GPU, whose kernels compute some groups at once; and what rules make of them."""

import pytest
from conftest import BUILD, package_has_gpu

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import ops  # noqa: E402
from invar import primitives as p  # noqa: E402

EPSILON = 1e-5
DEVICES = ["cpu", *(["cuda"] if package_has_gpu() else [])]
# Rows of one warp, of a block, unaligned, of several segments, split among blocks; columns of one
# segment and of more, few and many.
SHAPES = [
    (3, 8), (5, 257), (2, 3, 1024), (300, 40), (4100, 12), (9, 4100), (7, 4099), (2, 33000), (8200, 264),
]  # fmt: skip


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(bits(a), bits(b))


def bits(x):
    return x.detach().cpu().contiguous().view(torch.int32)


def calls_of(name, g, x, w, bias):
    rows = x.ndim - 1
    made = [
        (f"{name}_backward", (g, x, w), {"epsilon": EPSILON}),
        (f"{name}_backward_weight", (g, x), {"axis": rows, "epsilon": EPSILON}),
        ("reduce_sum", (g,), {"axes": list(range(rows)), "keepdims": 0}),
    ]
    return made if bias else made[:2]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "name, bias", [("layernorm", True), ("layernorm", False), ("rmsnorm", False)]
)
def test_gradients_of_norms_have_the_bits_of_single_calls(name, bias, shape, device):
    g, x, w = random(*shape), random(*shape, seed=1), random(shape[-1], seed=2)
    x[0, ..., 0] = 1e30  # a row whose squares overflow
    for weight in (w, w.to(torch.bfloat16)):
        found = p.group(*calls_of(name, g.to(device), x.to(device), weight.to(device), bias))
        single = [p.call(op, *of, **kw) for op, of, kw in calls_of(name, g, x, weight, bias)]
        assert len(found) == len(single)
        assert all(same(a, b) for a, b in zip(found, single))


@pytest.mark.parametrize("device", DEVICES)
def test_calls_that_share_no_operands_are_computed_one_by_one(device):
    x, w = random(6, 16).to(device), random(16, seed=1).to(device)
    others = [random(6, 16, seed=i).to(device) for i in range(2, 4)]
    dx, dw, total = p.group(
        ("layernorm_backward", (others[0], x, w), {"epsilon": EPSILON}),
        ("layernorm_backward_weight", (others[1], x), {"axis": 1, "epsilon": 0.5}),
        ("reduce_sum", (others[0],), {"axes": [1], "keepdims": 0}),
    )
    assert same(dx, p.layernorm_backward(others[0], x, w, epsilon=EPSILON))
    assert same(dw, p.layernorm_backward_weight(others[1], x, axis=1, epsilon=0.5))
    assert same(total, p.reduce_sum(others[0], axes=[1], keepdims=0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("wanted", [(0, 1, 2), (0, 1), (1, 2), (0,), (2,)])
def test_a_layer_norm_gives_the_gradients_that_are_wanted(wanted, device):
    given = [
        random(4, 5, 16).to(device),
        random(16, seed=1).to(device),
        random(16, seed=2).to(device),
    ]
    all_of = [x.clone().requires_grad_() for x in given]
    some = [x.clone().requires_grad_(i in wanted) for i, x in enumerate(given)]
    g = random(4, 5, 16, seed=3).to(device)
    for operands in (all_of, some):
        ops.layer_norm(operands[0], (16,), operands[1], operands[2]).backward(g)
    for i in range(3):
        assert (some[i].grad is not None) == (i in wanted)
        assert some[i].grad is None or same(some[i].grad, all_of[i].grad)


def test_gradients_of_a_group_are_differentiable():
    x, w = (random(*s).double().float().requires_grad_() for s in ((3, 8), (8,)))
    y = ops.rms_norm(x, (8,), w, 1e-5)
    first = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    second = torch.autograd.grad(first[0].sum(), (x, w))
    assert all(g.requires_grad for g in first) and all(torch.isfinite(g).all() for g in second)


def test_a_refused_call_of_a_group_is_named():
    x = random(3, 8)
    with pytest.raises(invar.BadInput, match="^rmsnorm_backward_weight: "):
        p.group(
            ("rmsnorm_backward", (x, x, random(8)), {"epsilon": EPSILON}),
            ("rmsnorm_backward_weight", (x, random(3, 9)), {"axis": 1, "epsilon": EPSILON}),
        )


def test_a_node_is_the_same_at_its_first_and_at_later_calls():
    """The second call of an operation is a node of the native module's."""
    x = random(4, 4)
    for op, more in (("softmax", {"axis": -1}), ("tanh", {}), ("layernorm", {"epsilon": 0.25})):
        found = []
        for _ in range(3):
            leaf = x.clone().requires_grad_()
            operands = (leaf, x[0]) if op == "layernorm" else (leaf,)
            y = p.call(op, *operands, isa="reference", **more)
            (g,) = torch.autograd.grad((y * y).sum(), leaf)
            found.append((y, g))
        assert all(same(a, b) for each in found for a, b in zip(each, found[0]))
        assert not p.call(
            op, *[o.detach() for o in operands], isa="reference", **more
        ).requires_grad
        with torch.no_grad():
            assert not p.call(op, *operands, isa="reference", **more).requires_grad


def test_a_result_without_a_gradient_has_no_node():
    x = random(4, 4).requires_grad_()
    for _ in range(3):
        assert not p.isnan(x).requires_grad


def test_a_node_refuses_operands_that_changed():
    x = random(4, 4).requires_grad_()
    p.mul(x, x)
    y = x.clone()
    z = p.mul(y, y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
