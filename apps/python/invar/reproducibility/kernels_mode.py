"""The mode under reproducible() that sees each kernel of torch before it runs: allowed ones run,
covered ones are computed by Invar, all others are refused."""

import math
import re

import torch
from torch.overrides import resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from invar import _native
from invar.autograd import modes
from invar.autograd.refusal import describe, flat, refused
from invar.errors import UNDER_AUTOCAST
from invar.reproducibility import allowed, gradients, random
from invar.reproducibility.kernels import (  # noqa: F401  they register handlers
    copies,
    elementwise,
    losses,
    matrices,
    optimizers,
    reductions,
)
from invar.reproducibility.kernels.handlers import HANDLERS, cast
from invar.reproducibility.kernels.indices import added
from invar.reproducibility.operands import has_floats

RUN, INTEGER, EXACT, COVERED, RANDOM, INDEX_PUT, SCATTER, SORT, SUMS, COPY, REFUSED = range(11)
_KINDS = {}  # operation with overload -> (kind, the name that tables have)
_NO_UNDERSCORE = {"floor_divide_": "floor_divide"}


def plain(name):
    """The name of an operation without its forms over lists and in place."""
    name = name.removeprefix("_foreach_")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def kind_of(function):
    space, name = function._schema.name.split("::")
    base = plain(name)
    if space in ("invar", "profiler", "prim", "prims_common"):
        return RUN, name
    if space in ("c10d", "_c10d_functional", "_c10d_functional_autograd"):
        return (SUMS if "reduce" in name else RUN), name
    if space != "aten":
        return REFUSED, name
    if name in HANDLERS and name.endswith("_"):  # a fused optimiser
        return COVERED, name
    if base == "copy":
        return COPY, base
    for kind, table in ((RANDOM, random.KERNELS), (RUN, allowed.MOVES), (RUN, allowed.QUESTIONS)):
        if base in table or name in table:
            return kind, base
    if base in allowed.EXACT:
        return EXACT, base
    if base in ("index_put", "_index_put_impl"):
        return INDEX_PUT, base
    if base in ("scatter", "index_copy"):
        return SCATTER, base
    if base in ("sort", "argsort", "topk"):
        return SORT, base
    if base in HANDLERS:
        return COVERED, base
    return (INTEGER if base in allowed.INTEGER else REFUSED), base


def as_meta(x):
    """Shape and type alone."""
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def stays_whole(function, args, kwargs):
    """Whether torch's results of whole numbers are whole, too; raises what torch raises of them."""
    args, kwargs = tree_map_only(torch.Tensor, as_meta, (args, kwargs))
    return not has_floats(tree_leaves(function(*args, **kwargs)), {})


def has_floats(args, kwargs):
    """Whether an operand or the result that is asked for is floating or complex."""
    for x in flat([*args, *kwargs.values()]):
        if isinstance(x, torch.Tensor):
            x = x.dtype
        elif isinstance(x, float):
            return True
        if isinstance(x, torch.dtype) and (x.is_floating_point or x.is_complex):
            return True
    return False


_SPACES = (
    ("linalg_", "torch.linalg", torch.linalg),
    ("fft_", "torch.fft", torch.fft),
    ("special_", "torch.special", torch.special),
    ("", "torch", torch),
    ("", "torch.Tensor", torch.Tensor),
    ("", "torch.nn.functional", torch.nn.functional),
)


def gradient_of(node):
    """What a node of torch's graph computes, as messages name it: LinalgSvdBackward0 is the
    gradient of torch.linalg.svd."""
    name = node.name().rpartition("Backward")[0]
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for prefix, where, space in _SPACES:
        short = name.removeprefix(prefix)
        if name.startswith(prefix) and short and hasattr(space, short):
            return f"the gradient of {where}.{short}"
    return f"the gradient {node.name()}"


def whole(base, args, kwargs):
    """Whether a kernel of the list INTEGER computes with whole numbers alone."""
    if base not in allowed.INTEGER or has_floats(args, kwargs):
        return False
    return base != "div" or kwargs.get("rounding_mode") is not None


def covered(function, base, args, kwargs):
    """Computes a kernel by its handler, in the form of `function`."""
    name = function._schema.name.split("::")[1]
    handler = HANDLERS[base]
    if name in HANDLERS and name.endswith("_"):
        return handler(*args, **kwargs)
    if name.startswith("_foreach_"):
        return over_lists(handler, name.endswith("_"), args, kwargs)
    out = kwargs.pop("out", None)
    if "values" in kwargs or "indices" in kwargs:
        raise refused(f"torch.{base}", "argument 'out': results are new tensors")
    if out is not None and base in ("arange", "linspace"):
        kwargs["dtype"] = out.dtype
    result = handler(*args, **kwargs)
    if out is not None:
        return into(out, result)
    return into(args[0], result) if name.endswith("_") and not name.endswith("__") else result


def into(target, result):
    """Writes a result into the tensor that torch wants it in."""
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to {target.dtype}")
    if result.shape != target.shape:
        if target.numel():
            raise refused(
                "in-place operation", f"result {list(result.shape)} into {list(target.shape)}"
            )
        target.resize_(result.shape)
    return target.copy_(cast(result, target.dtype))


def over_lists(handler, in_place, args, kwargs):
    n = next(len(x) for x in args if isinstance(x, list | tuple))
    at = lambda x, i: x[i] if isinstance(x, list | tuple) and len(x) == n else x
    results = [
        handler(*(at(x, i) for x in args), **{k: at(x, i) for k, x in kwargs.items()})
        for i in range(n)
    ]
    if not in_place:
        return results
    for target, result in zip(args[0], results):
        into(target, result)


def no_index_twice(name, index):
    """Writing twice to one place leaves open which value stays."""
    index = index.reshape(-1)
    if index.unique().numel() != index.numel():
        raise refused(
            f"torch.{name}", "an index stands twice, and which value stays is not specified"
        )


def index_put(function, args, kwargs):
    """target[indices] = values, or += in the order of the indices (gather.9)."""
    names = dict(zip(("self", "indices", "values", "accumulate"), args)) | kwargs
    target, indices, values = names["self"], names["indices"], names["values"]
    values = cast(values, target.dtype)
    adds = names.get("accumulate") and target.is_floating_point()
    if adds or (
        values.numel() > 1 and any(i is not None and i.dtype != torch.bool for i in indices)
    ):
        depth = max(i for i, index in enumerate(indices) if index is not None) + 1
        depth += sum(i.ndim - 1 for i in indices if i is not None and i.dtype == torch.bool)
        sizes, rest = target.shape[:depth], target.shape[depth:]
        places = torch.arange(math.prod(sizes), device=target.device).reshape(sizes)
        places = torch.ops.aten.index.Tensor(places, indices)
        if adds:
            rows = values.expand(*places.shape, *rest)
            found = added(
                target.reshape(-1, *rest), 0, places.reshape(-1), rows.reshape(-1, *rest)
            ).reshape(target.shape)
            return into(target, found) if function._schema.is_mutable else found
        no_index_twice("index_put", places)
    return function(target, indices, values, names.get("accumulate", False))


def scatter(function, base, args, kwargs):
    if "reduce" in kwargs or len(args) > 4:
        raise refused(f"torch.{base}", "with reduce= it has no reproducible kernel")
    source, dim, index = args[3], args[1], args[2]
    if isinstance(source, torch.Tensor) and source.numel() > 1 and index.numel() > 1:
        if base == "index_copy":
            no_index_twice(base, index)
        else:
            ordered = index.sort(dim).values
            n = ordered.shape[dim]
            if n > 1 and (ordered.narrow(dim, 0, n - 1) == ordered.narrow(dim, 1, n - 1)).any():
                raise refused(
                    "torch.scatter", "an index stands twice, and which value stays is not specified"
                )
    return function(*args, **kwargs)


def ordered(function, base, args, kwargs):
    """Sorts of torch that keep equal elements in order; topk is the head of such a sort, which is
    the order of the specification (topk.3) but for -0 and +0, equal in both."""
    names = dict(zip(("self", "k", "dim", "largest", "sorted"), args)) | kwargs
    if base == "topk":
        x, dim = names["self"], names.get("dim", -1)
        if not x.ndim:  # as of one element, which is found for k = 0, too
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        found = torch.sort(x, dim=dim, descending=names.get("largest", True), stable=True)
        return tuple(t.narrow(dim, 0, names["k"]) for t in found)
    if function._overloadname == "stable":
        args, stable = (args[0], *args[2:]), args[1] if len(args) > 1 else True
        kwargs = {**kwargs, "stable": True} if stable is not None else kwargs
    x, *given = args
    names = {**dict(zip(("dim", "descending"), given)), **kwargs, "stable": True}
    result = torch.sort(x, **names)
    return result[1] if base == "argsort" else tuple(result)


CONVERSIONS = frozenset("to type type_as float double half bfloat16 cpu cuda".split())


@modes.own
class Kernels(TorchDispatchMode):
    """Sees each kernel; `doing` is the function of torch that the user called, for messages;
    `autocast`: under torch.autocast, which hides itself from the kernels that it converts for."""

    doing, autocast = None, False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        found = _KINDS.get(function)
        if found is None:
            found = _KINDS[function] = kind_of(function)
        kind, base = found
        if kind == RUN:
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            grad = torch.is_grad_enabled()
            torch._C._set_grad_enabled(False)
            try:
                return self.judged(kind, base, function, args, dict(kwargs))
            finally:
                torch._C._set_grad_enabled(grad)

    def judged(self, kind, base, function, args, kwargs):
        if kind == EXACT:
            return function(*args, **kwargs)
        if kind == RANDOM:
            return random.drawn(function, base, args, kwargs)
        if kind == INDEX_PUT:
            return index_put(function, args, kwargs)
        if kind == SCATTER:
            return scatter(function, base, args, kwargs)
        if kind == SORT:
            return ordered(function, base, args, kwargs)
        if kind == COPY:
            return self.copied(function, args, kwargs)
        if kind == SUMS:
            return self.exchanged(function, args, kwargs)
        if base == "_to_copy" and self.autocast:
            if getattr(self.doing, "__name__", "to") not in CONVERSIONS:
                raise self.refusal(function, args, UNDER_AUTOCAST)
        if kind != REFUSED and whole(base, args, kwargs):
            return function(*args, **kwargs)
        if kind == COVERED:
            if not has_floats(args, kwargs) and stays_whole(function, args, kwargs):
                return function(*args, **kwargs)
            return self.named(function, lambda: covered(function, base, args, kwargs))
        raise self.refusal(function, args)

    @staticmethod
    def copied(function, args, kwargs):
        if function._schema.name != "aten::copy_":
            if function._schema.name == "aten::copy":
                return cast(args[1], args[0].dtype).expand(args[0].shape).clone()
            for target, source in zip(args[0], args[1]):
                target.copy_(cast(source, target.dtype))
            return None
        target, source, *rest = args
        return function(target, cast(source, target.dtype), *rest, **kwargs)

    def exchanged(self, function, args, kwargs):
        if has_floats([x for x in flat(args) if isinstance(x, torch.Tensor)], {}):
            raise self.refusal(
                function, args, "the order in which floating values of processes are added is not "
                "specified; add integers, as invar.training does"
            )  # fmt: skip
        return function(*args, **kwargs)

    def named(self, function, compute):
        try:
            return compute()
        except _native.Error as e:
            if hasattr(e, "named"):
                raise
            raise refused(self.name_of(function), str(e)) from e

    def name_of(self, function):
        name = function._schema.name.replace("::", ".")
        if self.doing is None:
            return name
        node = torch._C._current_autograd_node()
        if node is not None and self.doing in gradients.ENGINE:
            return f"{gradient_of(node)} (its kernel {name})"
        doing = resolve_name(self.doing) or getattr(self.doing, "__name__", "?")
        return f"{doing} (its kernel {name})"

    def refusal(self, function, args, why="no reproducible kernel"):
        return refused(self.name_of(function), f"{why} for {describe(args) or 'its arguments'}")
