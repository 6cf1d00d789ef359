"""What emitted modules inherit."""

import sys

import numpy as np
import torch

from invar import _native, arrays
from invar.modules.loading import build

TYPES = {name: getattr(torch, text.removeprefix("torch.")) for name, text in arrays.TORCH.items()}


def is_name(dim):
    """Whether a dimension of INPUTS is a name: not a number, not computed from names."""
    return isinstance(dim, str) and dim.isidentifier()


class Module(torch.nn.Module):
    """A class of this kind has INPUTS (name -> element type, dimensions) and WEIGHTS (name ->
    element type, shape, file, offset)."""

    INPUTS: dict
    WEIGHTS: dict

    def __init__(self):
        super().__init__()
        for name, (dtype, shape, _, _) in self.WEIGHTS.items():
            tensor = torch.empty(shape, dtype=TYPES[dtype])
            if tensor.is_floating_point():
                self.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
            else:
                self.register_buffer(name, tensor)

    def load(self, folder):
        """Reads the weights from the files beside the plan, whose digests the compiler has made of
        the same bytes."""
        for name, (dtype, shape, file, offset) in self.WEIGHTS.items():
            tensor = getattr(self, name)
            if tensor.numel() == 0:
                continue
            stored = np.memmap(
                folder / file, np.uint8, "r", offset, tensor.numel() * tensor.element_size()
            )
            tensor.detach().reshape(-1).view(torch.uint8).copy_(torch.from_numpy(np.array(stored)))

    def sizes(self, *inputs):
        """Checks the inputs against INPUTS, except for dimensions that are computed from others;
        returns what the named dimensions are, in the order of their first appearance."""
        if len(inputs) != len(self.INPUTS):
            raise _native.BadInput(
                f"{len(inputs)} inputs; the model takes {len(self.INPUTS)}: {', '.join(self.INPUTS)}"
            )
        found = {}
        for x, (name, (_, shape)) in zip(inputs, self.INPUTS.items()):
            if not isinstance(x, torch.Tensor):
                raise _native.BadInput(f"input '{name}': {type(x).__name__} is no torch.Tensor")
            if x.dim() == len(shape):
                for n, d in zip(x.shape, shape):
                    if is_name(d):
                        found.setdefault(d, n)
        for x, (name, (dtype, shape)) in zip(inputs, self.INPUTS.items()):
            wanted = [found.get(d) if isinstance(d, str) else d for d in shape]
            given = [n if d is None else d for d, n in zip(wanted, x.shape)]
            missing = any(is_name(d) and n is None for d, n in zip(shape, wanted))
            if (
                x.dtype != TYPES[dtype]
                or list(x.shape) != given
                or x.dim() != len(shape)
                or missing
            ):
                self.refuse(name, x, wanted)
        return tuple(found.values())

    def expect(self, name, x, wanted):
        """Checks an input some of whose dimensions are computed from others."""
        if tuple(x.shape) != wanted:
            self.refuse(name, x, wanted)

    def refuse(self, name, x, wanted):
        dtype, shape = self.INPUTS[name]
        takes = ", ".join(str(d) if n in (d, None) else f"{d} = {n}" for d, n in zip(shape, wanted))
        raise _native.BadInput(
            f"input '{name}': it is {x.dtype} {list(x.shape)}, the model takes {TYPES[dtype]} [{takes}]"
        )

    def size(self, value, element, name):
        """A dimension that an element of a value decides (spec/plan.md plan.15)."""
        found = int(value.reshape(-1)[element])
        if found < 0:
            raise _native.BadInput(
                f"the inputs lead to a dimension '{name}' = {found}, which is none"
            )
        return found

    @staticmethod
    def holds(condition):
        """A condition of one element."""
        return bool(condition.reshape(-1)[0])

    def loop(self, body, trips, condition, carried, fixed, rows):
        """Control flow (spec/plan.md plan.16): what is carried at last, and what the steps gave,
        stacked; without steps, of these types and shapes."""
        given, step, again = [[] for _ in rows], 0, self.holds(condition)
        while again and step < trips:
            again, *results = body(torch.full_like(trips, step), *carried, *fixed)
            carried, again, step = results[: len(carried)], self.holds(again), step + 1
            for row, found in zip(given, results[len(carried) :]):
                row.append(found)
                if found.shape != row[0].shape:
                    raise _native.BadInput(
                        f"loop: step {step - 1} gives a value of shape {list(found.shape)}, those "
                        f"before it {list(row[0].shape)}"
                    )
        stacked = lambda row, dtype, shape: (
            torch.stack(row) if row else torch.empty((0, *shape), dtype=dtype, device=trips.device)
        )
        return *carried, *(stacked(row, *types) for row, types in zip(given, rows))

    def computed(self, found, name):
        """Checks a dimension that is computed from such."""
        if found < 0:
            raise _native.BadInput(
                f"the inputs are too small or too large: the plan's dimension '{name}' is none for "
                f"their shapes and values"
            )

    def __reduce_ex__(self, protocol):
        emitted = sys.modules[type(self).__module__]
        return (
            build,
            (emitted.SOURCE, emitted.DIGEST),
            self.__getstate__() if hasattr(self, "__getstate__") else self.__dict__,
        )
