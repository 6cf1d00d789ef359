"""What every function of invar.ops is held to: torch's result in float64, torch's shapes and types,
and the same bytes on NumPy arrays, on operands that lie in memory in other ways, and in f16 and
bf16."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from conftest import BUILD

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402, F401
import torch  # noqa: E402
from invar import ops  # noqa: E402

NARROW = (torch.bfloat16, torch.float16)
EPSILON = {torch.float32: 2**-23, torch.bfloat16: 2**-7, torch.float16: 2**-10}


@dataclass
class Case:
    """ops.NAME(*args, **kwargs). `torch`: the function to compare with, by default of that name;
    `error`: in units of the type's epsilon, of the largest magnitude of the result; `narrow`:
    whether f16 and bf16 are tried, too."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    torch: object = None
    error: float = 8
    narrow: bool = True

    def __str__(self):
        shown = lambda v: (
            "x".join(map(str, v.shape)) or "scalar" if isinstance(v, torch.Tensor) else repr(v)
        )
        more = [f"{k}={shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join([*(shown(a) for a in self.args), *more])})"[:90]


def case(name, *args, torch=None, error=8, narrow=True, **kwargs):
    return Case(name, args, kwargs, torch, error, narrow)


def mapped(value, change):
    """`change` applied to every tensor inside."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(mapped(v, change) for v in value)
    return value


def called(function, c, change=lambda x: x):
    kwargs = {k: mapped(v, change) for k, v in c.kwargs.items()}
    return function(*(mapped(a, change) for a in c.args), **kwargs)


def results(found):
    return list(found) if isinstance(found, tuple) else [found]


def of_torch(name):
    for module in (torch.nn.functional, torch, torch.linalg):
        if hasattr(module, name):
            return getattr(module, name)
    raise AssertionError(name)


def near(got, wanted, units=64, unit=None):
    """Of one shape and type, within units of the least of its type's steps, or of `unit`, at the
    largest magnitude."""
    assert got.shape == wanted.shape
    unit = unit or (2**-52 if got.dtype == torch.float64 else 2**-23)
    close(got, wanted, unit, units, "near")


def as_type(dtype):
    return lambda x: x.to(dtype) if x.is_floating_point() else x


def spread_out(x):
    """The same elements, every other one of memory."""
    return torch.stack([x, x], -1)[..., 0]


def transposed(x):
    return x.mT.contiguous().mT if x.ndim > 1 else x


def raw(x):
    x = x if isinstance(x, np.ndarray) else x.detach().contiguous()
    if isinstance(x, torch.Tensor):
        return bytes(x.reshape(-1).view(torch.uint8).numpy())
    return np.ascontiguousarray(x).tobytes()


def close(got, wanted, unit, error, name):
    if not got.is_floating_point():
        assert torch.equal(got, wanted), f"{name}: {got} {wanted}"
        return
    got, wanted = got.double(), wanted.double()
    finite = wanted.isfinite()
    assert torch.equal(got.isnan(), wanted.isnan()), name
    assert torch.equal(got[~finite & ~wanted.isnan()], wanted[~finite & ~wanted.isnan()]), name
    if finite.any():
        most = wanted[finite].abs().max().item()
        gap = (got[finite] - wanted[finite]).abs().max().item()
        assert gap <= error * unit * most + 1e-44, f"{name}: {gap / unit / max(most, 1e-30)} units"


def check(c):
    ours, theirs = getattr(ops, c.name), c.torch or of_torch(c.name)
    typed = called(theirs, c)
    exact = called(theirs, c, as_type(torch.float64))
    got = called(ours, c)
    for g, w, e in zip(results(got), results(typed), results(exact), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape, f"{g.dtype}{g.shape}, {w.dtype}{w.shape}"
        close(g, e.to(w.dtype) if not w.is_floating_point() else e, 2**-23, c.error, str(c))
    want = [raw(g) for g in results(got)]
    same(c, want, "NumPy", lambda x: x.numpy())
    same(c, want, "strides", spread_out)
    same(c, want, "transposed", transposed)
    if c.narrow and results(got)[0].is_floating_point() and any_real(c):
        for dtype in NARROW:
            check_narrow(c, ours, theirs, dtype)


def any_real(c):
    """Whether an operand is of reals."""
    found = []
    called(lambda *a, **k: None, c, lambda x: found.append(x.is_floating_point()))
    return any(found)


def same(c, want, how, change):
    found = results(called(getattr(ops, c.name), c, change))
    assert [raw(g) for g in found] == want, f"{c}: other bytes with {how}"


def check_narrow(c, ours, theirs, dtype):
    """f16 and bf16: computed in f32 and rounded once, so the bytes are those of f32's result."""
    narrow = lambda x: as_type(dtype)(x)
    wide = lambda x: as_type(torch.float32)(as_type(dtype)(x))
    got, full = results(called(ours, c, narrow)), results(called(ours, c, wide))
    exact = results(called(theirs, c, lambda x: as_type(torch.float64)(narrow(x))))
    for g, f, e in zip(got, full, exact, strict=True):
        if not f.is_floating_point():
            assert torch.equal(g, f), f"{c} {dtype}"
            continue
        assert g.dtype == dtype, f"{c}: {g.dtype}"
        close(
            g, e.to(dtype) if dtype == torch.float16 else e, EPSILON[dtype], c.error, f"{c} {dtype}"
        )


def randn(*shape, seed=0):
    """Magnitudes over many binades, so that the order of a sum shows."""
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=made)
    return x * torch.exp2(torch.randint(-6, 7, shape, generator=made).float())


def ids(c):
    return str(c)


def refused(kind, pattern, function, *args, **kwargs):
    """An exception that is torch's kind and Invar's."""
    with pytest.raises(kind, match=pattern) as caught:
        function(*args, **kwargs)
    assert isinstance(caught.value, invar.Error), type(caught.value)
    assert "\n" not in str(caught.value)
