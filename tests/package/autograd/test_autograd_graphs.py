"""Gradients in torch's graph: what a node keeps, refuses and gives back; the bits of gradients."""

import subprocess
import sys
from pathlib import Path

import gradients
import invar
import pytest
import torch
from conftest import cpu_isas
from gradients import first, leaves, random
from invar import _native
from invar import primitives as p
from invar.autograd import rules
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
from accuracy import near  # noqa: E402

X, W = random(7, 33, seed=1), random(20, 33, seed=2)


def layer(x, w):
    """A bit of everything: contraction, activation, reduction, broadcast."""
    y = p.gelu(p.matmul(x, w, trans_a=0, trans_b=1))
    mean = p.reduce_mean(y, axes=[y.ndim - 1], keepdims=1)
    return p.tanh(p.mul(p.sub(y, mean), y))


def data(tensors):
    return [t.detach().numpy().tobytes() for t in tensors]


def test_every_operation_has_a_rule_or_none():
    rules._load()
    missing = set(_native.operations()) - set(rules._RULES) - rules._NONE
    assert missing == set(REFUSED), sorted(missing ^ set(REFUSED))
    assert not set(rules._RULES) & rules._NONE
    assert set(rules._RULES) | rules._NONE <= set(_native.operations())


# operation -> why it has neither
REFUSED = {
    "attention_backward": "where gradients of gradients are wanted, the rule of attention is a composition",
    "cross_entropy_backward": "the same",
}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(threads):
    x, w = random(64, 300, seed=1), random(200, 300, seed=2)
    try:
        invar.set_threads(1)
        expected = data(first(layer, [x, w]))
        invar.set_threads(threads)
        assert data(first(layer, [x, w])) == expected
    finally:
        invar.set_threads(0)


def test_instruction_sets():
    expected = data(first(layer, [X, W]))
    for isa in cpu_isas():
        try:
            invar.set_isa(isa)
            assert data(first(layer, [X, W])) == expected, isa
        finally:
            invar.set_isa()
    with pytest.raises(invar.BadInput, match="mmx"):
        invar.set_isa("mmx")


def test_a_row_alone_has_the_gradient_of_a_row_in_a_batch():
    x = random(5, 4, 33, seed=3)
    grad = random(5, 4, 20, seed=4)
    whole = first(lambda x: layer(x, W), [x], grad)[0]
    for i in range(5):
        alone = first(lambda x: layer(x, W), [x[i : i + 1]], grad[i : i + 1])[0]
        assert data([alone[0]]) == data([whole[i]])
        row = first(lambda x: layer(x, W), [x[i]], grad[i])[0]
        assert data([row]) == data([whole[i]])


def test_strides_do_not_matter():
    expected = data(first(layer, [X, W], grad := random(7, 20, seed=5)))
    wide = torch.stack([X, X], 2)[..., 0]
    assert not wide.is_contiguous()
    assert data(first(layer, [wide, W.mT.contiguous().mT], grad.mT.contiguous().mT)) == expected
    ones = torch.ones(())
    spread, whole = (first(layer, [X, W], g) for g in (ones.expand(7, 20), torch.ones(7, 20)))
    assert data(spread) == data(whole)


def test_graphs_are_kept_and_freed():
    x, w = leaves([X, W])
    y = layer(x, w).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    assert data([x.grad]) == data([once + once])
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_and_tensors_that_are_used_twice():
    (x,) = leaves([X])
    seen = []
    y = p.exp(x)
    y.register_hook(lambda g: seen.append(g) or g * 2)
    p.mul(y, y).sum().backward()
    (z,) = leaves([X])
    e = p.exp(z)
    p.mul(e, e).backward(torch.full_like(e, 2.0))
    assert len(seen) == 1 and data([x.grad]) == data([z.grad])


def test_versions_of_saved_tensors_are_checked():
    (x,) = leaves([X])
    y = x * 1
    z = p.mul(y, y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_only_what_is_needed_is_kept():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        x, w = leaves([X, W])
        p.matmul(x, w.detach(), trans_a=0, trans_b=1)  # of a frozen weight: no input
        p.add(x, x)
    assert len(kept) == 1 and kept[0].shape == w.shape


def test_results_without_gradients():
    (x,) = leaves([X])
    for y in (
        p.less(x, x.detach()),
        p.argmax(x, axis=1, select_last=0),
        p.cast(x, dtype="i64"),
        p.topk(x, axis=1, k=2, largest=1),
    ):
        assert not y.requires_grad
    with torch.no_grad():
        assert not p.exp(x).requires_grad
    assert not p.exp(x.detach()).requires_grad


def test_an_operation_without_a_rule_is_refused_by_name(monkeypatch):
    rules.rule_of("exp")
    monkeypatch.delitem(rules._RULES, "exp")
    (x,) = leaves([X])
    with pytest.raises(invar.NotCovered, match="^exp: an operand requires a gradient"):
        p.exp(x, isa="reference")  # whose rule no call before has asked for
    p.exp(x.detach())
    with pytest.raises(invar.NotCovered, match="^exp: an operand requires a gradient"):
        torch.func.grad(lambda x: p.exp(x).sum())(X)
    torch.func.vmap(p.exp)(X)


FORWARD = {
    "exp": p.exp,
    "matmul": lambda x: p.matmul(x, x, trans_a=0, trans_b=1),
    "softmax": lambda x: p.softmax(x, axis=1),
    "reduce_max": lambda x: p.reduce_max(x, axes=[1], keepdims=0),
    "where": lambda x: p.where(p.less(x, p.neg(x)), p.sigmoid(x), p.mul(x, x)),
    "sign": p.sign,
    "erf of f64": lambda x: invar.ops.erf(invar.ops.to(x, torch.float64)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_is_the_gradient_of_reverse_mode(name):
    """J t by jvp, by dual numbers, and row by row of J by grad."""
    f, t = FORWARD[name], random(*X.shape, seed=8)
    y, tangent = torch.func.jvp(f, (X,), (t,))
    assert torch.equal(y, f(X))
    with torch.autograd.forward_ad.dual_level():
        dual = f(torch.autograd.forward_ad.make_dual(X, t))
        found = torch.autograd.forward_ad.unpack_dual(dual).tangent
        p.exp(X)
    assert data([found]) == data([tangent])
    rows = torch.func.jacrev(f)(X).reshape(y.numel(), X.numel())
    near(tangent.reshape(-1).double(), rows.double() @ t.reshape(-1).double(), 84, 2**-23)


def test_forward_over_reverse_is_a_hessian():
    energy = lambda x: p.reduce_sum(p.tanh(x), axes=[0], keepdims=0)
    x = X[0, :5].clone()
    y = torch.tanh(x)
    near(torch.func.hessian(energy)(x), torch.diag(-2 * y * (1 - y * y)))


def test_results_without_elements_have_gradients():
    for shape in ((0, 3), (3, 0)):
        x = torch.zeros(shape, requires_grad=True)
        w = torch.ones(3, requires_grad=True)
        for y in (
            p.cumprod(x, axis=1, exclusive=0, reverse=0),
            p.gather_elements(x, torch.zeros(0, 0, dtype=torch.int64), axis=1),
            p.mul(x.reshape(0, 3), w),
        ):
            grads = torch.autograd.grad(y.sum(), (x, w), allow_unused=True)
            assert [None if g is None else g.shape for g in grads][0] == x.shape
            assert grads[1] is None or torch.equal(grads[1], torch.zeros(3))


def test_arrays_beside_tensors_are_refused():
    with pytest.raises(invar.BadInput, match="add: operand 1: ndarray, expected torch.Tensor"):
        p.add(X, X.numpy())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_give_the_same_bits(reentrant):
    """The gradient of the weight is a sum over its three uses, in the same order."""

    def deep(x, w):
        for _ in range(3):
            x = checkpoint(layer, x, w, use_reentrant=reentrant)
        return x

    def plain(x, w):
        for _ in range(3):
            x = layer(x, w)
        return x

    def backward(function):
        operands = leaves([X, random(33, 33, seed=7)])
        function(*operands).backward(random(7, 33, seed=6))
        return data([x.grad for x in operands])

    assert backward(deep) == backward(plain)


def test_gradients_do_not_import_what_only_the_compiler_needs():
    code = (
        "import sys, torch; from invar import primitives as p; x = torch.ones(2).requires_grad_();"
        "p.exp(x).sum().backward(); print('invar.autograd.library' in sys.modules, x.grad.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(gradients.BUILD / "python")},
    )
    assert done.stdout.startswith("False [2.718"), done


def test_a_package_without_its_gradients_fails_at_import(monkeypatch):
    import importlib

    from invar import _native, vjp

    assert set(_native.rooms()) == set(vjp.NAMES)
    monkeypatch.setattr(_native, "rooms", lambda: ["elementwise", "gone", "lost"])
    with pytest.raises(ImportError, match="lacks invar/vjp/gone.py and 1 more"):
        importlib.reload(vjp)
    monkeypatch.undo()
    importlib.reload(vjp)
