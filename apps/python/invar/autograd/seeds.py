"""Seeds of random numbers: those that are drawn when a call runs, in a graph of torch.compile, too.

    torch.ops.invar.drawn(str source, SymInt count, int site, *, Device device) -> Tensor

gives (seed, offset), i64 [2] on the host, from torch's generator of the host ("torch": one whole
number of it, and offset 0) or from invar.default_generator ("invar": the next `count` numbers). A
graph has one node for each call (`site` tells them apart), in the order of the program; a
checkpoint draws again what it drew."""

import itertools

import torch

from invar.generator import default_generator

_LIBRARY = torch.library.Library("invar", "FRAGMENT")
_TAGS = ("nondeterministic_seeded", "cudagraph_unsafe")
_sites = itertools.count()


@torch.compiler.assume_constant_result
def _site():
    """A number for each call that a compiler meets."""
    return next(_sites)


def _drawn(source, count, site=0, *, device=None):
    if source == "torch":
        return torch.stack([of_torch(), torch.zeros((), dtype=torch.int64)])
    signed = [(n + 2**63) % 2**64 - 2**63 for n in default_generator.draw(count)]
    return torch.tensor(signed, dtype=torch.int64)


def of_torch(generator=None):
    """One whole number of torch's generator, i64 [] on the host."""
    return torch.empty((), dtype=torch.int64).random_(generator=generator)


_LIBRARY.define(
    "drawn(str source, SymInt count, int site, *, Device device) -> Tensor",
    tags=[getattr(torch.Tag, name) for name in _TAGS if hasattr(torch.Tag, name)],
)
_LIBRARY.impl("drawn", _drawn, "CompositeExplicitAutograd")
torch.library.register_fake(
    "invar::drawn",
    lambda source, count, site, *, device: torch.empty(2, dtype=torch.int64),
    lib=_LIBRARY,
)


def traced(source, count, device):
    """(seed, offset), i64 [] on the device, in a graph."""
    found = torch.ops.invar.drawn(source, count, _site(), device=torch.device("cpu"))
    return found.to(device, non_blocking=True).unbind()
