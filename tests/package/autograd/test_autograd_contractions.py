"""Gradients of contractions and of attention, against torch's in float64."""

import math

import pytest
import torch
from gradients import compare, first, leaves, near, random
from invar import primitives as p

SHAPES = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((1, 7), (7, 1)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_matmul(shapes, trans_a, trans_b):
    a, b = (random(*s, seed=i) for i, s in enumerate(shapes))
    a = a.mT.contiguous() if trans_a else a
    b = b.mT.contiguous() if trans_b else b
    compare(
        lambda a, b: p.matmul(a, b, trans_a=trans_a, trans_b=trans_b),
        lambda a, b: (a.mT if trans_a else a) @ (b.mT if trans_b else b),
        [a, b],
    )


@pytest.mark.parametrize("width", [1, 4, 8])
def test_causal_conv(width):
    def composed(x, weight, bias):
        padded = torch.nn.functional.pad(x.transpose(1, 2), (width - 1, 0))
        return torch.nn.functional.conv1d(padded, weight.unsqueeze(1), bias, groups=5).transpose(
            1, 2
        )

    operands = [random(2, 9, 5, seed=5), random(5, width, seed=6), random(5, seed=7)]
    compare(p.causal_conv, composed, operands)


def recurrence(q, k, v, g, *beta, key_heads, value_heads, scale):
    """Linear attention by its definition, position after position."""
    b, s = v.shape[:2]
    q, k = (
        x.reshape(b, s, key_heads, -1).repeat_interleave(value_heads // key_heads, 2)
        for x in (q, k)
    )
    v, decay = (x.reshape(b, s, value_heads, -1) for x in (v, g.exp()))
    state, rows = v.new_zeros(b, value_heads, q.shape[3], v.shape[3]), []
    for t in range(s):
        state, u = state * decay[:, t, :, :, None], v[:, t]
        for rate in beta:
            u = rate[:, t, :, None] * (u - torch.einsum("bhd,bhdv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * u[:, :, None]
        rows.append(scale * torch.einsum("bhd,bhdv->bhv", q[:, t], state).flatten(1))
    return torch.stack(rows, 1)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 64, 130])
def test_linear_attention(rows, delta, channels):
    """linear_attention.10 to linear_attention.14, into a third chunk of positions."""
    heads = {"key_heads": 2, "value_heads": 4, "scale": 0.375}
    d, d_v = 5, 3
    q, k = (random(2, rows, 2 * d, seed=i).reshape(2, rows, 2, d) for i in (30, 31))
    q, k = (torch.nn.functional.normalize(x, dim=3).reshape(2, rows, 2 * d) for x in (q, k))
    v, g = random(2, rows, 4 * d_v, seed=32), random(2, rows, 4 * (d if channels else 1), seed=33)
    operands = [q, k, v, -torch.nn.functional.softplus(g - 2)]
    operands += [random(2, rows, 4, seed=34).sigmoid()] if delta else []
    ours = p.gated_delta_rule if delta else p.gated_linear_attention
    compare(
        lambda *x: ours(*x, **heads), lambda *x: recurrence(*x, **heads), operands, factor=512,
        second=rows == 5,
    )  # fmt: skip


def test_linear_attention_with_equal_keys():
    """The matrix of the correction is 1 everywhere below its diagonal: its powers are huge."""
    k = torch.ones(1, 64, 4) / 2
    operands = [k, k, random(1, 64, 3, seed=35), torch.zeros(1, 64, 1), torch.ones(1, 64, 1)]
    heads = {"key_heads": 1, "value_heads": 1, "scale": 1.0}
    compare(
        lambda *x: p.gated_delta_rule(*x, **heads), lambda *x: recurrence(*x, **heads), operands,
        factor=1024, second=False,
    )  # fmt: skip


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_the_layout_of_operands_reaches_no_bit(trans_a, trans_b):
    """From 2048^3 on a GPU transposes operands first; a few rows are a small product."""
    device, n = ("cuda", 2048) if torch.cuda.is_available() else ("cpu", 132)
    a, b = random(n, n, seed=20).to(device), random(n, n, seed=21).to(device)
    found = p.matmul(a, b, trans_a=trans_a, trans_b=trans_b)
    plain = [x.mT.contiguous() if t else x for x, t in ((a, trans_a), (b, trans_b))]
    few = p.matmul(plain[0][:36].contiguous(), plain[1], trans_a=0, trans_b=0)
    assert torch.equal(found[:36], few)


@pytest.mark.parametrize("trans_b", [0, 1])
def test_gradients_of_a_large_matmul_have_the_bits_of_the_operation(trans_b):
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU here")
    a, b = (random(2048, 2048, seed=22 + i).cuda().requires_grad_() for i in range(2))
    grad = random(2048, 2048, seed=24).cuda()
    found = torch.autograd.grad(p.matmul(a, b, trans_a=0, trans_b=trans_b), [a, b], grad)
    with torch.no_grad():
        da = p.matmul(grad, b, trans_a=0, trans_b=1 - trans_b)
        left, right = (grad, a) if trans_b else (a, grad)
        db = p.matmul(left, right, trans_a=1, trans_b=0)
    assert torch.equal(found[0], da) and torch.equal(found[1], db)


def test_matmul_of_binary64():
    a, b = (random(*s, seed=2, dtype=torch.float64).requires_grad_() for s in ((2, 3, 4), (4, 5)))
    ours = lambda a, b: p.matmul(a, b, trans_a=0, trans_b=0)
    assert torch.autograd.gradcheck(ours, [a, b]) and torch.autograd.gradgradcheck(ours, [a, b])


def test_a_weight_of_bf16_has_a_gradient_of_bf16():
    a, b = random(6, 4, seed=3), random(5, 4, seed=4).bfloat16()
    for trans_a in (0, 1):
        x = a.mT.contiguous() if trans_a else a
        found = first(lambda a, b: p.matmul(a, b, trans_a=trans_a, trans_b=1), [x, b])
        wide = first(lambda a, b: p.matmul(a, b, trans_a=trans_a, trans_b=1), [x, b.float()])
        assert torch.equal(found[0], wide[0])
        assert torch.equal(found[1], wide[1].bfloat16())


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("shared", [False, True])
def test_grouped_matmul(stacked, trans_b, shared):
    index = torch.tensor([[0, 2, -1, 0], [1, 1, -3, 2]])
    a, stack = random(2, 1 if shared else 4, 3, seed=5), random(3, 3, 5, seed=6)
    stack = stack.mT.contiguous() if trans_b else stack
    matrices = [stack] if stacked else list(stack)

    def theirs(a, *b):
        b = b[0] if stacked else torch.stack(b)
        b = b.mT if trans_b else b
        return (a.expand(2, 4, 3).unsqueeze(-2) @ b[index]).squeeze(-2)

    compare(lambda a, *b: p.grouped_matmul(a, index, *b, trans_b=trans_b), theirs, [a, *matrices])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_matmul_of_quantised_weights(bits, zeros):
    n, k, block = 6, 40, 16
    groups = 3
    made = torch.Generator().manual_seed(4)
    make = lambda *s: torch.randint(0, 256, s, dtype=torch.uint8, generator=made)
    q = make(n, k) if bits == 8 else make(n, groups, block // 2)
    zero = [make(n, groups if bits == 8 else 2)] if zeros else []
    scales = random(n, groups, seed=7)
    ours = lambda a: p.matmul_nbits(
        a, q, scales, *zero, bits=bits, block=block, trans_b=1, zero=0 if zeros else 8
    )
    whole = ours(torch.eye(k)).double()  # [K, N]: its rows are those of w
    compare(ours, lambda a: a @ whole, [random(2, 3, k, seed=8)])


def test_scales_of_quantised_weights_are_refused():
    a, scales = random(2, 16, seed=1), random(4, 1, seed=2).requires_grad_()
    y = p.matmul_nbits(
        a, torch.zeros(4, 16, dtype=torch.uint8), scales, bits=8, block=16, trans_b=1, zero=0
    )
    with pytest.raises(NotImplementedError, match="operand 2 requires a gradient: scales"):
        y.sum().backward()


B, S, T, HQ, HKV, D, DV = 2, 5, 5, 4, 2, 6, 3


def reference(q, k, v, more, *, scale, causal=0, softcap=0.0, left=-1, right=-1, first=0, order=()):
    """spec/attention.md in torch, heads first."""
    named = dict(zip(order, more))
    k, v = (x.repeat_interleave(HQ // HKV, 1) for x in (k, v))
    s = q @ k.mT * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    at, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    seen = torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if "lengths" in named:
        n = named["lengths"].clamp(0, k.shape[2]).view(-1, 1, 1, 1)
        at, seen = at + n - q.shape[2], j < n
    if causal:
        seen = seen & (j <= at)
    if right >= 0:
        seen = seen & (j <= at + right)
    if left >= 0:
        seen = seen & ((j >= at - left) | (j < first))
    if "slopes" in named:
        s = s + named["slopes"].view(-1, 1, 1) * (j - at)
    if "mask" in named:
        mask = named["mask"]
        short = k.shape[2] - mask.shape[-1]
        if mask.dtype == torch.bool:
            seen = seen & torch.nn.functional.pad(mask, (0, short))
        else:
            s = s + torch.nn.functional.pad(mask, (0, short), value=-math.inf)
            s = s.masked_fill(s.isinf(), -1e30)
            seen = seen & (s > -1e29)
    s = s.masked_fill(~seen, -1e30)
    top = s.detach().amax(-1, keepdim=True)
    sink = named.get("sinks")
    if sink is not None:
        top = torch.maximum(top, sink.detach().view(-1, 1, 1))
    e = torch.exp(s - top) * seen
    total = e.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink.view(-1, 1, 1) - top)
    return (e / torch.where(total == 0, 1.0, total)) @ v


LOW = torch.tensor([[0.0, -math.inf, 0.5, 0.25, -1.0]] * 5) + torch.eye(5)
FORMS = {
    "plain": ({}, []),
    "causal": (dict(causal=1), []),
    "softcap": (dict(causal=1, softcap=1.5), []),
    "window": (dict(causal=1, left=1), []),
    "both sides": (dict(causal=0, left=1, right=1, first=1), []),
    "mask": (dict(), [("mask", random(B, 1, S, T, seed=3) > -0.5)]),
    "nothing seen": (dict(), [("mask", torch.zeros(S, T, dtype=torch.bool))]),
    "bias": (dict(causal=1), [("mask", LOW)]),
    "bias of heads": (dict(), [("mask", random(HQ, S, T - 1, seed=4))]),
    "sinks": (dict(causal=1), [("sinks", random(HQ, seed=5))]),
    "lengths": (dict(causal=1), [("lengths", torch.tensor([3, 5]))]),
    "slopes": (dict(causal=1), [("slopes", random(HQ, seed=6))]),
    "all": (
        dict(causal=1, left=3, softcap=2.0),
        [
            ("mask", random(S, T, seed=7)),
            ("sinks", random(HQ, seed=8)),
            ("lengths", torch.tensor([4, 5])),
            ("slopes", random(HQ, seed=9)),
        ],
    ),
}


def forms(name):
    attributes, more = FORMS[name]
    given = dict(q_heads=HQ, kv_heads=HKV, scale=0.375, causal=0, heads_first=1)
    given |= attributes | {n: 1 for n, _ in more}
    operands = [
        random(B, HQ, S, D, seed=1),
        random(B, HKV, T, D, seed=2),
        random(B, HKV, T, DV, seed=3),
    ]
    order = [n for n, _ in more]
    theirs = lambda q, k, v, *m: reference(q, k, v, m, scale=0.375, order=order, **attributes)
    return given, operands + [x for _, x in more], theirs


@pytest.mark.parametrize("name", FORMS)
def test_attention(name):
    given, operands, theirs = forms(name)
    compare(lambda *x: p.attention(*x, **given), theirs, operands)


def test_attention_of_joined_heads():
    given, (q, k, v), _ = forms("causal")
    joined = lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1).contiguous()
    grad = random(B, HQ, S, DV, seed=11)
    heads = first(lambda *x: p.attention(*x, **given), [q, k, v], grad)
    rows = first(
        lambda *x: p.attention(*x, **given | dict(heads_first=0)),
        [joined(x) for x in (q, k, v)],
        joined(grad),
    )
    for a, b in zip(heads, rows):
        assert torch.equal(joined(a), b)


@pytest.mark.parametrize("name", ["causal", "mask", "all"])
def test_a_row_of_a_batch_has_the_gradient_of_the_row_alone(name):
    given, operands, _ = forms(name)
    grad = random(B, HQ, S, DV, seed=12)
    whole = first(lambda *x: p.attention(*x, **given), operands, grad)[:3]
    part = lambda x: x[1:] if x.shape[:1] == (B,) else x
    alone = first(lambda *x: p.attention(*x, **given), [part(x) for x in operands], grad[1:])[:3]
    for a, b in zip(whole, alone):
        assert a[1:].numpy().tobytes() == b.numpy().tobytes()


def test_gradients_of_hidden_keys_are_zero():
    """A key that nothing sees may hold anything; its gradient is 0."""
    given, (q, k, v), _ = forms("plain")
    mask = torch.ones(S, T, dtype=torch.bool)
    mask[:, 2] = False
    found = first(lambda *x: p.attention(*x, mask, **given | dict(mask=1)), [q, k, v])
    assert not found[1][:, :, 2].any() and not found[2][:, :, 2].any()
    assert found[1][:, :, 1].any()


def test_only_what_needs_a_gradient_is_computed():
    q, k, v = leaves(forms("causal")[1])
    given = forms("causal")[0]
    y = p.attention(q.detach(), k.detach(), v, **given)
    y.sum().backward()
    near(
        v.grad,
        first(
            lambda v: p.attention(q.detach(), k.detach(), v, **given),
            [v.detach()],
            torch.ones_like(y),
        )[0],
        0,
    )
