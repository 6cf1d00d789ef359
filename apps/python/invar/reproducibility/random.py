"""Random numbers under reproducible().

torch's generator for the host (a Mersenne Twister) draws whole numbers, which are the same on every
machine. Its floating values are not: their formulas depend on the vector unit. So each tensor of
random values is Invar's (spec: random), for a seed that is one whole number from torch's generator.
Hence torch.manual_seed, Generator objects, saved generator states and checkpoints do what they do
elsewhere, and the values do not depend on the device."""

import math

import torch

from invar import ops, primitives
from invar.autograd.refusal import refused
from invar.ops.random import torch_seed
from invar.reproducibility.kernels.handlers import cast

INTEGERS = frozenset("randperm randint randint_like random".split())
OTHERS = frozenset(
    """
    cauchy geometric poisson binomial rrelu_with_noise
    _standard_gamma _sample_dirichlet normal_functional _fused_dropout
    """.split()
)


def key(generator=None):
    """A seed: one whole number of torch's generator."""
    if generator is not None and generator.device.type != "cpu":
        raise refused(
            "torch.Generator", f"on {generator.device.type}; covered are those on the host"
        )
    return torch.empty((), dtype=torch.int64).random_(generator=generator)


def uniform(shape, device, generator=None):
    """f32 in [0, 1) (invar.ops.rand)."""
    return ops.rand(list(shape), seed=int(key(generator)), device=device)


def normal(shape, device, generator=None):
    """f32 by Box and Muller (invar.ops.randn)."""
    return ops.randn(list(shape), seed=int(key(generator)), device=device)


def between(u, low, high):
    """u (high - low) + low."""
    number = lambda x: torch.full((), float(x), device=u.device)
    return primitives.add(primitives.mul(u, number(high - low)), number(low))


def scaled(z, mean, std):
    number = lambda x: torch.full((), float(x), device=z.device)
    z = z if std == 1 else primitives.mul(z, number(std))
    return z if mean == 0 else primitives.add(z, number(mean))


def made(sizes, kwargs):
    """(shape, device, dtype) of a tensor that is made."""
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    return list(sizes), torch.device(kwargs.get("device") or "cpu"), dtype


def like(x, kwargs):
    device = torch.device(kwargs.get("device") or x.device)
    return list(x.shape), device, kwargs.get("dtype") or x.dtype


def rand(sizes, *, generator=None, **kwargs):
    shape, device, dtype = made(sizes, kwargs)
    return cast(uniform(shape, device, generator), dtype)


def randn(sizes, *, generator=None, **kwargs):
    shape, device, dtype = made(sizes, kwargs)
    return cast(normal(shape, device, generator), dtype)


def rand_like(x, **kwargs):
    shape, device, dtype = like(x, kwargs)
    return cast(uniform(shape, device), dtype)


def randn_like(x, **kwargs):
    shape, device, dtype = like(x, kwargs)
    return cast(normal(shape, device), dtype)


def uniform_(x, low=0.0, high=1.0, *, generator=None):
    found = between(uniform(x.shape, x.device, generator), low, high)
    return x.copy_(cast(found, x.dtype))


def normal_(x, mean=0.0, std=1.0, *, generator=None):
    found = scaled(normal(x.shape, x.device, generator), mean, std)
    return x.copy_(cast(found, x.dtype))


def normals(mean, std, size=None, *, generator=None, out=None, **kwargs):
    """torch.normal of numbers or tensors."""
    tensors = [v for v in (mean, std) if isinstance(v, torch.Tensor)]
    if size is not None:
        shape, device, dtype = made(size, kwargs)
    else:
        shape = torch.broadcast_shapes(*(v.shape for v in tensors))
        device, dtype = tensors[0].device, tensors[0].dtype
    if any(bool((v < 0).any()) for v in (std,) if isinstance(v, torch.Tensor)):
        raise RuntimeError("normal: std: expected numbers of 0 or more")
    z = normal(shape, device, generator)
    of = lambda v: cast(v, torch.float32) if isinstance(v, torch.Tensor) else torch.full(
        (), float(v), device=device
    )  # fmt: skip
    return cast(primitives.add(primitives.mul(z, of(std)), of(mean)), dtype)


def bernoulli_(x, p=0.5, *, generator=None):
    return x.copy_(uniform(x.shape, x.device, generator) < p)


def bernoulli(x, p=None, *, generator=None):
    found = uniform(x.shape, x.device, generator) < (x if p is None else p)
    return found.to(x.dtype)


def waiting(shape, device, generator=None):
    """Exponential numbers, -ln(1 - u), at least 2^-25: none is 0."""
    u = uniform(shape, device, generator)
    number = lambda v: torch.full((), v, device=u.device)
    found = primitives.neg(primitives.log1p(primitives.neg(u)))
    return primitives.max(found, number(2.0**-25))


def exponential_(x, lambd=1.0, *, generator=None):
    found = waiting(x.shape, x.device, generator)
    if lambd != 1:
        found = primitives.div(found, torch.full((), float(lambd), device=found.device))
    return x.copy_(cast(found, x.dtype))


def log_normal_(x, mean=1.0, std=2.0, *, generator=None):
    found = scaled(normal(x.shape, x.device, generator), mean, std)
    return x.copy_(cast(primitives.exp(found), x.dtype))


def multinomial(x, num_samples, replacement=False, *, generator=None):
    """The classes of the largest of weight / exponential number; with replacement one set of such
    numbers for each sample."""
    weights = cast(x, torch.float32)
    if not bool(((weights >= 0) & weights.isfinite()).all()) or not bool(
        (weights > 0).any(-1).all()
    ):
        raise RuntimeError("multinomial: input: expected finite weights of 0 or more, not all 0")
    if not replacement:
        if int((weights > 0).sum(-1).min()) < num_samples:
            raise RuntimeError(
                f"multinomial: num_samples: {num_samples} are more than the classes with a weight"
            )
        waits = waiting(x.shape, x.device, generator)
        order = torch.sort(primitives.div(weights, waits), dim=-1, descending=True, stable=True)
        return order.indices[..., :num_samples].clone()
    rows = weights.unsqueeze(-2).expand(*x.shape[:-1], num_samples, x.shape[-1])
    waits = waiting(rows.shape, x.device, generator)
    order = torch.sort(primitives.div(rows, waits), dim=-1, descending=True, stable=True)
    return order.indices[..., 0].clone()


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """torch.nn.functional.rrelu; in training its slopes are Invar's numbers for a seed that torch's
    generator draws."""
    if not training:
        return ops.rrelu(input, lower, upper)
    u = ops.to(ops.rand(*input.shape, device=input.device, **torch_seed(input)), input.dtype)
    slope = ops.add(ops.mul(u, upper - lower), lower)
    return ops.where(ops.lt(input, 0), ops.mul(input, slope), input)


DRAWN = {
    "exponential_": exponential_,
    "log_normal_": log_normal_,
    "multinomial": multinomial,
    "rand": rand,
    "randn": randn,
    "rand_like": rand_like,
    "randn_like": randn_like,
    "uniform_": uniform_,
    "normal": normals,
    "normal_": normal_,
    "bernoulli_": bernoulli_,
    "bernoulli": bernoulli,
}
KERNELS = INTEGERS | OTHERS | frozenset(name.removesuffix("_") for name in DRAWN)


def drawn(function, base, args, kwargs):
    """Computes a kernel that draws."""
    name = function._schema.name.split("::")[1]
    if base in INTEGERS:
        return whole_numbers(function, name, args, kwargs)
    if name not in DRAWN or "names" in kwargs or "out" in kwargs:
        raise refused(f"torch.{name}", "its random values have no reproducible kernel")
    dtype = args[0].dtype if isinstance(args[0], torch.Tensor) else kwargs.get("dtype")
    if dtype is not None and dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise refused(f"torch.{name}", f"random values of {dtype}; covered are those of float32")
    for unused in ("layout", "pin_memory", "memory_format"):
        kwargs.pop(unused, None)
    return DRAWN[name](*args, **kwargs)


def dropping(name):
    """torch.nn.functional.dropout, or one of its kind, by Invar's mask (random.5)."""

    def drawn(input, p=0.5, training="alpha" not in name, inplace=False):
        if not training or p == 0:
            return input
        channels = name.endswith("d") or name.startswith("feature")
        count = math.prod(input.shape[:2]) if channels else None
        return getattr(ops, name)(input, p, True, **torch_seed(input, count))

    return drawn


def whole_numbers(function, name, args, kwargs):
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    device = tensors[0].device if tensors else torch.device(kwargs.get("device") or "cpu")
    dtype = tensors[0].dtype if tensors else kwargs.get("dtype") or torch.int64
    if device.type != "cpu":
        raise refused(f"torch.{name}", f"on {device.type} it draws other numbers than on the host")
    if dtype.is_floating_point:
        raise refused(f"torch.{name}", f"{dtype}: covered are whole numbers")
    return function(*args, **kwargs)
