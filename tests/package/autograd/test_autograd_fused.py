"""Gradients that are one operation: of attention and of cross-entropy. They have the bits of the
compositions by which gradients of gradients go, on every instruction set; against torch in binary64
they are in ops/ and autograd/. Their bits on all cases are tested by invar_conformance."""

import pytest
from conftest import BUILD, cpu_isas, package_has_gpu

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import ops, rooms  # noqa: E402
from invar import primitives as p  # noqa: E402
from invar.modules import source as emit  # noqa: E402
from torch.nn import functional  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if package_has_gpu() else [])


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def same_bits(a, b):
    assert a.shape == b.shape
    return torch.equal(a.detach().cpu().view(torch.int32), b.detach().cpu().view(torch.int32))


def gradients(function, operands, grad, composed=False):
    """By the operation, or with create_graph by the composition."""
    leaves = [x.detach().clone().requires_grad_() for x in operands]
    return torch.autograd.grad(function(*leaves), leaves, grad, create_graph=composed)


# Attention. The operands after q, k and v, and their attributes.
HEADS, KEY_HEADS = 4, 2
MORE = {
    "plain": ([], {}),
    "every key": ([], {"causal": 0}),
    "window": ([], {"left": 9, "first": 2}),
    "softcap": ([], {"softcap": 3.0}),
    "mask": ([random(2, 1, 70, 90).where(random(2, 1, 70, 90) < 1, float("-inf"))], {"mask": 1}),
    "bool": ([random(70, 90) < 0.5], {"mask": 1, "causal": 0}),
    "sinks": ([random(HEADS)], {"sinks": 1}),
    "lengths": ([torch.tensor([80, 3])], {"lengths": 1}),
    "slopes": ([random(HEADS, seed=1)], {"slopes": 1, "right": 4, "causal": 0}),
}


def attention_of(name, device="cpu"):
    more, attributes = MORE[name]
    given = dict(q_heads=HEADS, kv_heads=KEY_HEADS, scale=0.3, causal=1, heads_first=1) | attributes
    more = [x.to(device) for x in more]
    return lambda q, k, v: p.attention(q, k, v, *more, **given)


def operands(queries=70, keys=90, size=24, values=20, batch=2):
    return [
        random(batch, HEADS, queries, size),
        random(batch, KEY_HEADS, keys, size, seed=1),
        random(batch, KEY_HEADS, keys, values, seed=2),
    ], random(batch, HEADS, queries, values, seed=3)


@pytest.mark.parametrize("name", MORE)
def test_attention_has_the_bits_of_the_composition(name):
    given, grad = operands()
    expected = gradients(attention_of(name), given, grad, composed=True)
    for device in DEVICES:
        found = gradients(
            attention_of(name, device), [x.to(device) for x in given], grad.to(device)
        )
        assert all(same_bits(a, b) for a, b in zip(found, expected)), device


def test_infinities_go_where_the_composition_has_them():
    given, grad = operands()
    for x, at in ((0, (0, 0, 3, 1)), (1, (0, 1, 60, 2)), (2, (1, 0, 5, 0))):
        hurt = [y.clone() for y in given]
        hurt[x][at] = float("inf")
        found = gradients(attention_of("window"), hurt, grad)
        expected = gradients(attention_of("window"), hurt, grad, composed=True)
        assert any(a.isnan().any() for a in found)
        for a, b in zip(found, expected):
            assert same_bits(a.nan_to_num(0), b.nan_to_num(0))


def test_one_operation_for_one_backward_pass(monkeypatch):
    """And none that holds all scores."""
    given, grad = operands()
    y = attention_of("plain")(*[x.requires_grad_() for x in given])
    called = []
    for op in ("attention_backward", "matmul", "exp"):
        whole = getattr(p, op)
        monkeypatch.setattr(
            p, op, lambda *x, op=op, whole=whole, **k: called.append(op) or whole(*x, **k)
        )
    y.backward(grad)
    assert called == ["attention_backward"]


def backward_operands(**sizes):
    given, grad = operands(**sizes)
    attributes = dict(q_heads=HEADS, kv_heads=KEY_HEADS, scale=0.3, causal=1, heads_first=1)
    return [grad, p.attention(*given, **attributes), *given], attributes


def test_every_instruction_set_has_the_same_bits():
    given, attributes = backward_operands(queries=140, keys=140, size=33, values=7)
    best = p.attention_backward(*given, **attributes)
    for isa in cpu_isas():
        assert same_bits(best, p.attention_backward(*given, **attributes, isa=isa)), isa
    losses = random(70, 1030), torch.arange(70) % 9
    for isa in cpu_isas():
        for op, first in (("cross_entropy", []), ("cross_entropy_backward", [random(70)])):
            best = p.call(op, *first, *losses, ignore=3)
            assert same_bits(best, p.call(op, *first, *losses, ignore=3, isa=isa)), (op, isa)


def test_heads_wider_than_the_operation_takes_the_composition():
    given, grad = operands(queries=5, keys=6, size=260, values=8)
    found = gradients(attention_of("plain"), given, grad)
    expected = gradients(attention_of("plain"), given, grad, composed=True)
    assert all(same_bits(a, b) for a, b in zip(found, expected))
    attributes = dict(q_heads=HEADS, kv_heads=KEY_HEADS, scale=0.3, causal=1, heads_first=1)
    with pytest.raises(invar.Error, match="256"):
        p.attention_backward(grad, grad, *given, **attributes)


def test_what_does_not_fit_is_refused():
    (grad, y, q, k, v), attributes = backward_operands()
    for wrong in ([grad[:1], y, q, k, v], [grad, y, q, k[:, :, 1:], v], [grad, y, q, k]):
        with pytest.raises(invar.Error):
            p.attention_backward(*wrong, **attributes)
    with pytest.raises(invar.NotCovered, match="attention_backward"):
        p.attention_backward(grad.requires_grad_(), y, q, k, v, **attributes)


# Cross-entropy.
ROWS, CLASSES = 40, 300
TARGET = torch.arange(ROWS) * 7 % CLASSES


def composed_loss(x, target, reduction, ignore=-100):
    return ops.nll_loss(ops.log_softmax(x, dim=1), target, reduction=reduction, ignore_index=ignore)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore", [-100, 14])
def test_cross_entropy_has_the_bits_of_the_composition(reduction, ignore):
    x, grad = 3 * random(ROWS, CLASSES), random(ROWS) if reduction == "none" else random()
    expected = composed_loss(x, TARGET, reduction, ignore)
    expected = (
        expected,
        *gradients(lambda x: composed_loss(x, TARGET, reduction, ignore), [x], grad),
    )
    for device in DEVICES:
        target = TARGET.to(device)
        loss = lambda x: ops.cross_entropy(x, target, reduction=reduction, ignore_index=ignore)
        on = x.to(device), grad.to(device)
        found = loss(on[0]), *gradients(loss, [on[0]], on[1])
        assert all(same_bits(a, b) for a, b in zip(found, expected)), device
        twice = gradients(loss, [on[0]], on[1], composed=True)
        assert same_bits(twice[0], expected[1]), device


def test_cross_entropy_of_gradients_of_gradients():
    x = 3 * random(6, 5)
    target = torch.tensor([0, 4, 2, -100, 1, 1])
    weights = random(6, 5, seed=1)

    def second(cross_entropy, x):
        x = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(cross_entropy(x, target), x, create_graph=True)
        return torch.autograd.grad((first * weights.to(x.dtype)).sum(), x)[0]

    theirs = second(functional.cross_entropy, x.double())
    assert (second(ops.cross_entropy, x).double() - theirs).abs().max() < 1e-6


@pytest.mark.parametrize("wrong", [-1, 5, 2**40, -(2**63)])
def test_classes_out_of_range_are_refused(wrong):
    target = torch.tensor([0, wrong, 2])
    with pytest.raises(IndexError, match="target.*0 ... 4"):
        ops.cross_entropy(random(3, 5), target)
    with pytest.raises(invar.BadInput, match="index"):
        p.cross_entropy(random(3, 5), target, ignore=-100)
    assert torch.isfinite(ops.cross_entropy(random(3, 5), target, ignore_index=wrong))


def test_compiled_whole():
    given, grad = operands(queries=9, keys=9)
    target = torch.arange(9 * 2 * HEADS) % 20

    def loss(q, k, v):
        y = ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return ops.cross_entropy(y.reshape(-1, 20), target)

    expected = gradients(loss, given, torch.ones(()))
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    found = gradients(compiled, given, torch.ones(()))
    assert all(same_bits(a, b) for a, b in zip(found, expected))


def test_spellings_in_torch():
    given, attributes = backward_operands(queries=9, keys=9)
    calls = {
        "attention_backward": (given, attributes),
        "cross_entropy": ([random(6, 5), TARGET[:6] % 5], {"ignore": 2}),
        "cross_entropy_backward": ([random(6), random(6, 5), TARGET[:6] % 5], {"ignore": 2}),
    }
    for name, (values, attributes) in calls.items():
        expected = p.call(name, *values, **attributes)
        names = "abcde"[: len(values)]
        types = [("i64" if x.dtype == torch.int64 else "f32", list(x.shape)) for x in values]
        text = emit.in_torch(
            emit.Call(name, list(names), attributes, types, ("f32", list(expected.shape)))
        )
        scope = dict(zip(names, values), torch=torch, functional=functional, rooms=rooms)
        assert (expected - eval(text, scope)).abs().max() < 5e-6, text


@pytest.mark.parametrize("device", DEVICES)
def test_graphed_callables_have_the_bits_of_calls(device):
    """torch.cuda.make_graphed_callables where there is a GPU; elsewhere a second call."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(random(80, 80))

        def forward(self, x):
            q, k, v, _ = ops.linear(x, self.weight).view(2, 30, 4, 20).unbind(2)
            q, k, v = (y.unsqueeze(1) for y in (q, k, v))
            y = ops.scaled_dot_product_attention(q, k, v, is_causal=True)
            return ops.cross_entropy(y.reshape(-1, 20), torch.arange(60, device=x.device) % 20)

    model, x = Model().to(device), random(2, 30, 80).to(device)
    model(x).backward()
    expected, model.weight.grad = model.weight.grad, None
    again = torch.cuda.make_graphed_callables(model, (x,)) if device == "cuda" else model
    for _ in range(2):
        model.weight.grad = None
        again(x).backward()
        assert same_bits(model.weight.grad, expected)
