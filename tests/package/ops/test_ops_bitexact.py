"""invar.bitexact has BitExact's signatures and results."""

import inspect

import pytest
from accuracy import randn, raw, refused, torch
from invar import bitexact

X, W, B = randn(64, 700), randn(700, seed=1), randn(700, seed=2)
WANTED = {
    "rms_norm": lambda x: x / torch.sqrt((x * x).mean(-1, True) + 1e-6) * W.double(),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (700,), W.double(), B.double(), 1e-6),
    "matmul": lambda x: x @ X.double().T,
    "sum": lambda x: x.sum(-1, True),
    "mean": lambda x: x.mean(-1, True),
    "max": lambda x: x.amax(-1, True),
    "min": lambda x: x.amin(-1, True),
    "var": lambda x: x.var(-1, keepdim=True, correction=0),
    "sigmoid": torch.sigmoid,
}
MORE = {"rms_norm": (W,), "layer_norm": (W, B), "matmul": (X.T.contiguous(),)}
SIGNATURES = {
    "rms_norm": "(input, weight, eps=1e-06)",
    "layer_norm": "(input, weight, bias, eps=1e-06)",
    "matmul": "(A, B)",
    "sigmoid": "(input)",
    **{n: "(input, dim=-1)" for n in ("sum", "mean", "max", "min", "var")},
}


@pytest.mark.parametrize("name", WANTED)
def test_results(name):
    got, want = getattr(bitexact, name)(X, *MORE.get(name, ())), WANTED[name](X.double())
    assert got.dtype == torch.float32 and got.shape == want.shape
    assert (got - want).abs().max() <= 2**-20 * want.abs().max()


@pytest.mark.parametrize("name", WANTED)
def test_batch_invariance(name):
    function, more = getattr(bitexact, name), MORE.get(name, ())
    whole = function(X, *more)
    for rows in (slice(0, 1), slice(5, 6), slice(63, 64), slice(1, 40)):
        assert (function(X[rows], *more) - whole[rows]).abs().max() == 0
    assert raw(function(X.numpy(), *(m.numpy() for m in more))) == raw(whole)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    plain = lambda p: p.replace(annotation=inspect.Parameter.empty)
    found = inspect.signature(getattr(bitexact, name))
    found = found.replace(
        parameters=[plain(p) for p in found.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    assert str(found) == SIGNATURES[name] and set(SIGNATURES) == set(bitexact.__all__)


def network(x):
    """Of BitExact's example: two layers, a normalization and a sigmoid."""
    line = lambda low, high, *shape: torch.linspace(low, high, torch.Size(shape).numel()).reshape(
        shape
    )
    h = bitexact.matmul(x, line(-0.5, 0.5, 64, 32)) + line(-0.1, 0.1, 32)
    h = bitexact.rms_norm(h, torch.ones(32), 1e-6)
    return bitexact.sigmoid(bitexact.matmul(h, line(-0.3, 0.3, 32, 10)) + line(-0.05, 0.05, 10))


def test_its_example():
    x = (torch.arange(128 * 64).float().reshape(128, 64) % 97) / 97
    first = network(x)
    assert all(torch.equal(network(x), first) for _ in range(3))
    assert torch.equal(network(x[7:8]), first[7:8])


def test_refusals():
    refused(RuntimeError, "rms_norm", bitexact.rms_norm, X, W[:5])
    refused(RuntimeError, "matmul", bitexact.matmul, X, X)
    refused(IndexError, "sum", bitexact.sum, X, 3)


def test_its_own_module_is_that_of_invar():
    import bitexact as imported

    assert imported.__all__ == bitexact.__all__
    assert all(getattr(imported, name) is getattr(bitexact, name) for name in bitexact.__all__)
