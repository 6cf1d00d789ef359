"""A call of torch's against Invar's: each call that Invar accepts agrees with torch, or is refused
by name (NotCovered), and what torch refuses Invar refuses, too.

Integers, truth values, shapes and types agree exactly. A floating result lies as near to torch's
result of binary64 as its type allows: within UNITS steps of the type at the largest magnitude of
the result (at least 1), of the coarsest type where operands of several meet, or as near as twice
torch's own result of that type."""

import contextlib
import dataclasses
import random
import re
import zlib

import invar
import torch

AGREES, REFUSED, DIFFERS, FAILS, ACCEPTS = "agrees", "refused", "differs", "fails", "accepts"
FAULTS = (DIFFERS, FAILS, ACCEPTS)
UNITS = 64
# torch computes these of binary64 with constants of binary32.
COARSE = {"celu", "hardsigmoid"}
WIDENED = (torch.float32, torch.float16, torch.bfloat16)
# torch leaves open which of equal elements these name.
ANY_OF_EQUALS = {"argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}


@dataclasses.dataclass
class Call:
    """theirs(*args, **kwargs) of torch; ours: the function of invar.ops, None: theirs under
    invar.reproducible()."""

    name: str
    theirs: object
    args: tuple
    kwargs: dict
    ours: object = None

    def __str__(self):
        given = [shown(a) for a in self.args]
        given += [f"{k}={shown(v)}" for k, v in self.kwargs.items()]
        way = "reproducible()" if self.ours is None else "invar.ops"
        return f"{way} {self.name}({', '.join(given)})"


def shown(x):
    if isinstance(x, torch.Tensor):
        laid = x.layout != torch.strided or x.is_contiguous()
        strides = "" if laid else f" strides {list(x.stride())}"
        grad = " grad" if x.requires_grad else ""
        return f"{str(x.dtype)[6:]}{list(x.shape)}{strides}{grad}"
    if isinstance(x, list | tuple):
        return f"[{', '.join(map(shown, x))}]"
    return getattr(x, "__name__", None) or repr(x)


def mapped(change, x):
    """`change` of each tensor inside of lists, tuples and dictionaries."""
    if isinstance(x, torch.Tensor):
        return change(x)
    if isinstance(x, dict):
        return {k: mapped(change, v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        values = [mapped(change, v) for v in x]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    return x


def tensors_in(x):
    found = []
    mapped(found.append, x)
    return found


@dataclasses.dataclass
class Outcome:
    """Results and gradients (None: there is none), or the error of one of the two."""

    results: list = dataclasses.field(default_factory=list)
    operands: list = dataclasses.field(default_factory=list)  # after the call
    gradients: list = dataclasses.field(default_factory=list)
    error: Exception | None = None
    backward_error: Exception | None = None
    values: object = None


def factor(y):
    """What a result's gradient is: the same numbers in each way of computing it."""
    numbers = (torch.arange(y.numel(), dtype=torch.float64) * 0.37) % 1 - 0.4
    return numbers.to(torch.float16).to(y.dtype).reshape(y.shape)


def leaf(x):
    """The same elements with the same strides, apart from x."""
    if x.layout != torch.strided:
        return x.detach().clone().requires_grad_(x.requires_grad)
    base = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)
    with torch.no_grad():
        if 0 in x.stride() and x.numel():  # expanded
            base = x.detach()
        else:
            base.copy_(x)
    return base.requires_grad_(x.requires_grad)


def outcome(function, args, kwargs, context=contextlib.nullcontext):
    args, kwargs = mapped(leaf, args), mapped(leaf, kwargs)
    leaves = [x for x in tensors_in([args, kwargs]) if x.requires_grad]
    found = Outcome()
    torch.manual_seed(0)
    try:
        with context():
            y = function(*args, **kwargs)
    except Exception as e:
        found.error = e
        return found
    found.values = None if tensors_in(y) else y
    results = tensors_in(y)
    found.results = [x.detach() for x in results]
    found.operands = [x.detach() for x in tensors_in([args, kwargs])]
    ends = [x for x in results if x.requires_grad]
    if ends and leaves:
        factors = [factor(x.detach()) for x in ends]
        try:
            with context():
                grads = torch.autograd.grad(ends, leaves, factors, allow_unused=True)
            found.gradients = list(grads)
        except Exception as e:
            found.backward_error = e
    return found


def wide(x):
    y = x.detach().double() if x.dtype in WIDENED else x.detach()
    return y.requires_grad_(x.requires_grad)


def reference(call):
    """torch's outcome of binary64; None where it has none."""
    given = tensors_in([call.args, call.kwargs])
    named = [v for v in [*call.args, *call.kwargs.values()] if isinstance(v, torch.dtype)]
    if named or not any(x.dtype in WIDENED for x in given):
        return None
    found = outcome(call.theirs, mapped(wide, call.args), mapped(wide, call.kwargs))
    return None if found.error or found.backward_error else found


def far(ours, theirs, exact, what, units=UNITS, step=0.0):
    """Why a result is not torch's; None where it is."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{what}: {shown(ours)}, torch's is {shown(theirs)}"
    if ours.layout != torch.strided or theirs.layout != torch.strided:
        ours, theirs = ours.to_dense(), theirs.to_dense()
    if not ours.dtype.is_floating_point:
        if ours.dtype.is_complex:
            ours, theirs = (
                torch.view_as_real(ours.resolve_conj()),
                torch.view_as_real(theirs.resolve_conj()),
            )
            return far(ours, theirs, None, what)
        return (
            None if torch.equal(ours, theirs) else f"{what}: {few(ours)}, torch's is {few(theirs)}"
        )
    same_kind = exact is not None and exact.shape == theirs.shape and exact.is_floating_point()
    a, b = ours.double(), theirs.double()
    e = exact.double() if same_kind else b
    equal = (a == b) | (a == e.to(theirs.dtype).double()) | (a.isnan() & b.isnan())
    whole = a.isfinite() & b.isfinite() & e.isfinite()
    most = max(1.0, float(e[whole].abs().max())) if whole.any() else 1.0
    info = torch.finfo(ours.dtype)
    bound = 2 * (b - e).abs() + units * (max(info.eps, step) * most + info.smallest_normal)
    good = equal | (whole & ((a - e).abs() <= bound))
    if bool(good.all()):
        return None
    return f"{what}: {few(a[~good])}, torch's is {few(b[~good])} (exact: {few(e[~good])})"


def few(x):
    values = x.reshape(-1)[:4].tolist()
    return f"{values}{' ...' if x.numel() > 4 else ''}"


def refusal(error):
    return isinstance(error, invar.NotCovered | NotImplementedError)


# What torch refuses without a reason in the call: types that it lacks, and faults of its own.
LACKS = re.compile(
    "not implemented for|not support|ZeroDivisionError|must be contiguous|select\\(\\): index 0 out of|"
    "smaller than kernel size|negative integer powers"
)


def absent(error):
    """Whether torch has no kernel for a type here, or no signature for such arguments: no statement
    about the call."""
    return isinstance(error, NotImplementedError | TypeError) or bool(LACKS.search(str(error)))


def judged(call):
    """(verdict, why)."""
    theirs = outcome(call.theirs, call.args, call.kwargs)
    if call.ours is None:
        ours = outcome(call.theirs, call.args, call.kwargs, invar.reproducible)
    else:
        ours = outcome(call.ours, call.args, call.kwargs)
    for mine, torchs, what in (
        (ours.error, theirs.error, "forward"),
        (ours.backward_error, theirs.backward_error, "backward"),
    ):
        if torchs is not None:
            if mine is not None or what == "backward" or absent(torchs):
                return AGREES, ""
            return ACCEPTS, f"{what}: torch raises {line(torchs)}"
        if mine is not None:
            return (REFUSED if refusal(mine) else FAILS), f"{what}: {line(mine)}"
    return compared(call, ours, theirs)


def compared(call, ours, theirs):
    for a, b in ((ours.gradients, theirs.gradients), (theirs.gradients, ours.gradients)):
        a.extend([None] * (len(b) - len(a)))
    if len(ours.results) != len(theirs.results):
        return DIFFERS, f"{len(ours.results)} results, torch has {len(theirs.results)}"
    if ours.values != theirs.values and not (ours.values != ours.values):
        return DIFFERS, f"{ours.values}, torch's is {theirs.values}"
    exact = reference(call)
    if exact is not None and (len(exact.results), len(exact.gradients)) != (
        len(theirs.results),
        len(theirs.gradients),
    ):
        exact = None
    kinds = {x.dtype for x in tensors_in([call.args, call.kwargs]) if x.is_floating_point()}
    step = max((torch.finfo(kind).eps for kind in kinds if len(kinds) > 1), default=0.0)
    for part in ("results", "operands", "gradients"):
        wanted = getattr(theirs, part)
        best = getattr(exact, part) if exact is not None else [None] * len(wanted)
        for i, (a, b, e) in enumerate(zip(getattr(ours, part), wanted, best)):
            if a is None or b is None:
                if (a is None) != (b is None) and bool((b if a is None else a).any()):
                    return DIFFERS, f"{part}[{i}]: {a}, torch's is {b}"
                continue
            short = call.name.split("/")[0].split(".")[-1]
            coarse = short in COARSE and b.dtype == torch.float64
            why = far(a, b, e, f"{part}[{i}]", 2.0**29 if coarse else UNITS, step)
            if why and not (short in ANY_OF_EQUALS and ties(call)):
                return DIFFERS, why
    return AGREES, ""


def ties(call):
    """Whether equal elements may change places."""
    x = next(iter(tensors_in(call.args)), None)
    return x is not None and x.unique().numel() < x.numel()


def line(error):
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:240]


def seeded(*parts):
    """A generator of Python for these parts, the same in each run."""
    return random.Random(zlib.crc32(" ".join(map(str, parts)).encode()))
