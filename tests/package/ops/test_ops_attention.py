"""Attention and rotary embedding."""

import math

import pytest
from accuracy import case, check, ids, near, ops, randn, raw, refused, torch

sdpa = "scaled_dot_product_attention"
make = lambda *shape, seed=0: randn(*shape, seed=seed) / 8
Q, K, V = make(2, 4, 5, 8), make(2, 4, 7, 8, seed=1), make(2, 4, 7, 6, seed=2)
G, H = make(2, 2, 7, 8, seed=3), make(2, 2, 7, 6, seed=4)
BOOL = torch.rand(5, 7, generator=torch.Generator().manual_seed(5)) > 0.3
BOOL[:, 3] = True
LONG = [make(1, 2, 300, 16, seed=i) for i in range(3)]

CASES = [
    case(sdpa, Q, K, V),
    case(sdpa, Q, K, V, scale=0.3),
    case(sdpa, Q, K, V, is_causal=True),
    case(sdpa, Q, G, H, enable_gqa=True),
    case(sdpa, Q, G, H, is_causal=True, enable_gqa=True),
    case(sdpa, Q, K, V, BOOL),
    case(sdpa, Q, K, V, BOOL.expand(2, 1, 5, 7)),
    case(sdpa, Q, K, V, BOOL[:, :1] | True),
    case(sdpa, Q, K, V, make(4, 5, 7)),
    case(sdpa, Q, K, V, torch.where(BOOL, 0.0, -torch.inf)),
    case(sdpa, Q, G, H, BOOL, enable_gqa=True),
    case(sdpa, Q[0, 0], K[0, 0], V[0, 0]),
    case(sdpa, Q[0], K[0], V[0], BOOL),
    case(sdpa, Q[None], K[None], V[None], BOOL),
    case(sdpa, Q[None], K[None], V[None], make(1, 2, 4, 5, 7)),
    case(sdpa, Q, K[:1], V[:1]),
    case(sdpa, Q, K[:, :1], V[:, :1]),
    case(sdpa, *LONG, error=16),
    case(sdpa, *LONG, is_causal=True, error=16),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_attention(c):
    check(c)


def plain(q, k, v, seen=None, sinks=None, softcap=0.0):
    """In float64."""
    s = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    s = softcap * torch.tanh(s / softcap) if softcap else s
    s = s if seen is None else s.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        s = torch.cat([s, sinks.double().reshape(-1, 1, 1).expand(*s.shape[:-1], 1)], -1)
    return (s.softmax(-1)[..., : k.shape[-2]] @ v.double()).float()


def test_window_softcap_and_sinks():
    q, k, v = LONG
    i, j = torch.arange(300)[:, None], torch.arange(300)
    sinks = torch.tensor([0.5, -1.0])
    close = lambda got, want: near(got, want)
    attend = getattr(ops, sdpa)
    close(
        attend(q, k, v, window=(40, -1), is_causal=True), plain(q, k, v, (j <= i) & (j >= i - 40))
    )
    close(attend(q, k, v, window=(3, 5)), plain(q, k, v, (j <= i + 5) & (j >= i - 3)))
    close(attend(q, k, v, softcap=2.0), plain(q, k, v, softcap=2.0))
    close(attend(q, k, v, sinks=sinks), plain(q, k, v, sinks=sinks))
    assert raw(attend(Q, K, V, BOOL[0])) == raw(attend(Q, K, V, BOOL[:1]))
    mask = (j <= i) & (j >= i - 40)
    assert raw(attend(q, k, v, mask)) == raw(attend(q, k, v, window=(40, -1), is_causal=True))


def test_a_query_does_not_depend_on_its_batch():
    q, k, v = (torch.cat([x, x.flip(2), x * 2]) for x in LONG)
    whole = getattr(ops, sdpa)(q, k, v, is_causal=True)
    for b in range(3):
        assert raw(
            getattr(ops, sdpa)(q[b : b + 1], k[b : b + 1], v[b : b + 1], is_causal=True)
        ) == raw(whole[b])
    for n in (1, 129, 250):
        assert raw(
            getattr(ops, sdpa)(q[:, :, :n], k[:, :, :n], v[:, :, :n], is_causal=True)
        ) == raw(whole[:, :, :n])


def test_a_query_that_sees_nothing_gives_zero():
    mask = torch.zeros(5, 7, dtype=torch.bool)
    assert torch.equal(getattr(ops, sdpa)(Q, K, V, mask), torch.zeros(2, 4, 5, 6))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary", [0, 4])
def test_rope(interleaved, rotary):
    x, half = make(2, 3, 5, 8), (rotary or 8) // 2
    angle = torch.arange(5.0)[:, None] * torch.rand(half)
    cos, sin = angle.cos(), angle.sin()
    r, rest = x[..., : 2 * half].double(), x[..., 2 * half :].double()
    a, b = (r[..., 0::2], r[..., 1::2]) if interleaved else r.chunk(2, -1)
    pair = a * cos - b * sin, b * cos + a * sin
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    got = ops.rope(x, cos, sin, interleaved=interleaved, rotary_dim=rotary)
    near(got, torch.cat([turned, rest], -1))
    assert raw(got) == raw(
        ops.rope(
            x,
            cos.expand(2, 5, half),
            sin.expand(1, 5, half),
            interleaved=interleaved,
            rotary_dim=rotary,
        )
    )
    assert raw(got) == raw(
        ops.rope(x.numpy(), cos.numpy(), sin.numpy(), interleaved=interleaved, rotary_dim=rotary)
    )
    assert raw(got[0]) == raw(ops.rope(x[0], cos, sin, interleaved=interleaved, rotary_dim=rotary))


def test_refusals():
    attend = getattr(ops, sdpa)
    refused(NotImplementedError, "dropout_p", attend, Q, K, V, dropout_p=0.5)
    refused(RuntimeError, "'attn_mask' and 'is_causal'", attend, Q, K, V, BOOL, is_causal=True)
    refused(RuntimeError, "do not broadcast", attend, Q, G, H)
    refused(RuntimeError, "expected query", attend, Q, K[..., :4], V)
    refused(RuntimeError, "argument 'key': expected elements of float32", attend, Q, K.double(), V)
    refused(RuntimeError, "heads", attend, Q, make(2, 3, 7, 8), make(2, 3, 7, 8), enable_gqa=True)
    refused(RuntimeError, "attn_mask", attend, Q, K, V, torch.ones(3, 7, dtype=torch.bool))
    refused(RuntimeError, "sinks", attend, Q, K, V, sinks=torch.ones(3))
    refused(RuntimeError, "argument 'cos'", ops.rope, Q, torch.ones(5, 3), torch.ones(5, 3))
