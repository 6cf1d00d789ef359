"""Random numbers under reproducible(): values come from Invar's counter-based generator, whole
numbers on the host from torch's, which is the same on every machine."""

import torch

from invar.reproducibility.refusal import refused

INTEGERS = frozenset("randperm randint randint_like random".split())
VALUES = frozenset(
    """
    rand rand_like randn randn_like uniform normal bernoulli native_dropout
    """.split()
)
OTHERS = frozenset(
    """
    cauchy exponential geometric log_normal multinomial poisson binomial dropout rrelu_with_noise
    _standard_gamma _sample_dirichlet normal_functional _fused_dropout
    """.split()
)
KERNELS = INTEGERS | VALUES | OTHERS


def drawn(function, base, args, kwargs, generator):
    name = f"torch.{function._schema.name.split('::')[1]}"
    if base in INTEGERS:
        return whole_numbers(function, name, args, kwargs)
    raise refused(name, "random values of torch's generator differ between machines")


def whole_numbers(function, name, args, kwargs):
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    device = tensors[0].device if tensors else torch.device(kwargs.get("device") or "cpu")
    dtype = tensors[0].dtype if tensors else kwargs.get("dtype") or torch.int64
    if device.type != "cpu":
        raise refused(name, f"on {device.type} it draws other numbers than on the host: draw there")
    if dtype.is_floating_point:
        raise refused(name, f"{dtype}: covered are whole numbers")
    return function(*args, **kwargs)
