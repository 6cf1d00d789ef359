"""Gradients of parameters as exact sums over units (spec/training.md training.1 to training.6)."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from invar import _native, primitives


class Accumulator:
    """Where the contributions of one parameter go: integers, in the buffer of ExactGradients.

    units   the number of units of the losses whose backward pass runs; None: each index of axis 0
            is one"""

    units: int | None

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        total: torch.Tensor,
        magnitude: torch.Tensor,
        count: torch.Tensor,
    ) -> None:
        self.name, self.shape, self.units = name, tuple(shape), None
        self.total, self.magnitude, self.count = total, magnitude, count

    def add(self, per_row: torch.Tensor) -> None:
        """Adds contributions: f32 [rows, *shape of the parameter], where each unit has the same
        number of rows, in order; the rows of a unit are summed first (reduction.1). A parameter
        that is used more than once gets contributions of each use (training.2)."""
        per_row = per_row.detach()
        if per_row.dtype != torch.float32:
            raise _native.NotCovered(f"{self.name}: contributions of {per_row.dtype}; only float32")
        if per_row.ndim != len(self.shape) + 1 or tuple(per_row.shape[1:]) != self.shape:
            raise _native.BadInput(
                f"{self.name}: contributions of shape {tuple(per_row.shape)}, expected "
                f"[units, {', '.join(map(str, self.shape))}]"
            )
        units, size = self._split(len(per_row))
        if size != 1:
            per_row = primitives.reduce_sum(
                per_row.reshape(units, size, *self.shape), axes=[1], keepdims=0
            )
        self.add_sums(primitives.fixed_sum(per_row), primitives.fixed_magnitude(per_row), units)

    def add_matmul(self, first: torch.Tensor, second: torch.Tensor) -> None:
        """Adds the contributions first[r]^T second[r] of [rows, T, M] and [rows, T, N]: one
        contraction over all rows of a unit."""
        units, _ = self._split(len(first))
        first, second = (x.reshape(units, -1, x.shape[-1]) for x in (first, second))
        found = primitives.fixed_matmul(first, second)
        self.add_sums(found[:-1], found[-1], units)

    def add_unit(self, contribution: torch.Tensor) -> None:
        """Adds the contribution of one unit: f32 of the parameter's shape."""
        contribution = contribution.unsqueeze(0)
        self.add_sums(
            primitives.fixed_sum(contribution), primitives.fixed_magnitude(contribution), 1
        )

    def add_rows(
        self, rows: torch.Tensor, sums: torch.Tensor, magnitude: torch.Tensor, units: int
    ) -> None:
        """Adds what fixed_sum made of single rows of the parameter (i64 indices, which may repeat),
        and the magnitude of all units."""
        self.total.view(self.shape[0], -1).index_add_(0, rows, sums)  # modulo 2^64
        self.magnitude += magnitude
        self.count += units

    def part(self, shape: tuple[int, ...], begin: int) -> "_Part":
        """That of the elements from `begin` on, row-major, as a tensor of this shape."""
        return _Part(self, shape, begin)

    def _split(self, rows: int) -> tuple[int, int]:
        """(units, rows of each)."""
        units = self.units or rows
        if rows % max(units, 1):
            raise _native.NotCovered(
                f"{self.name}: it meets {rows} rows, which are no multiple of the {units} units: axis "
                "0 of what it meets does not count units"
            )
        return units, rows // max(units, 1)

    def add_sums(self, total: torch.Tensor, magnitude: torch.Tensor, units: int) -> None:
        """Adds what fixed_sum and fixed_magnitude made of the contributions of `units` units."""
        self.total += total.reshape(self.shape)  # modulo 2^64
        self.magnitude += magnitude
        self.count += units

    def value(self, divisor: int = 1) -> Any:
        """The sum as f32, divided by `divisor` where that is not 1: two roundings."""
        found = primitives.fixed_value(self.total, self.magnitude)
        if divisor == 1:
            return found
        count = torch.full((), divisor, dtype=torch.float32, device=found.device)
        return primitives.div(found, count)


class _Part(Accumulator):
    """Where the contributions of elements of a parameter go. How many units there are, the whole
    accumulator says: it is told so before the backward pass, after the parts are made."""

    def __init__(self, whole: Accumulator, shape: tuple[int, ...], begin: int) -> None:
        self._whole, self.name, self.shape = whole, whole.name, shape
        self.total = whole.total.view(-1)[begin : begin + math.prod(shape)].view(shape)
        self.magnitude, self.count = whole.magnitude, whole.count

    @property
    def units(self) -> int | None:  # type: ignore[override]
        return self._whole.units


BATCHES = torch.nn.modules.batchnorm._BatchNorm
DROPS = torch.nn.modules.dropout._DropoutNd


class ExactGradients:
    """Sums the gradients of a model's parameters over units, exactly: any split of a batch into
    micro-batches and over workers gives the same bits.

    A unit is an index of axis 0 of the batch. The loss is a vector with one value for each unit;
    its backward pass hands the contribution of every unit to the accumulators, and .grad stays None
    until write(). check() shows whether a model keeps units apart.

        exact = invar.training.ExactGradients(model)
        exact.zero()
        for part in micro_batches:
            exact.backward(loss(model(part)))  # losses of units: [units]
        exact.all_reduce()  # with torch.distributed
        exact.write(divisor=units)

    model: a torch.nn.Module, or (name, parameter) pairs. Parameters that require no gradient are
    left alone. Refused by name: parameters that are not float32; BatchNorm in training mode, whose
    results join units; a parameter that gets a gradient which is not of single units. Only eager
    mode.

    Random numbers of invar.nn's dropouts are those of each unit's place in the batch, where the
    forward pass says which units it has, and all parts have one seed:

        with exact.part(first, len(part), seed=step):
            exact.backward(loss(model(part)))"""

    def __init__(self, model: torch.nn.Module | Iterable[tuple[str, torch.nn.Parameter]]) -> None:
        if not isinstance(model, torch.nn.Module | Iterable):
            raise _native.BadInput(
                f"model: {type(model).__name__} is neither a torch.nn.Module nor (name, parameter) pairs"
            )
        self._model = model if isinstance(model, torch.nn.Module) else None
        named = model.named_parameters() if self._model is not None else model
        self.parameters = {name: p for name, p in named if p.requires_grad}
        if not self.parameters:
            raise _native.BadInput(
                "ExactGradients: the model has no parameter that requires a gradient"
            )
        for name, p in self.parameters.items():
            if p.dtype != torch.float32:
                raise _native.NotCovered(f"{name}: parameters of {p.dtype}; only float32")
        devices = {p.device for p in self.parameters.values()}
        if len(devices) > 1:
            raise _native.NotCovered(
                f"ExactGradients: parameters on {' and '.join(sorted(map(str, devices)))}; only one device"
            )
        self._refuse_mixing()
        self._allocate(devices.pop())
        self._register()

    def _allocate(self, device: torch.device) -> None:
        """One buffer of integers, so that workers join theirs with one call."""
        shapes = {name: p.shape for name, p in self.parameters.items()} | {"loss": torch.Size(())}
        sizes = self._sizes = [shape.numel() for shape in shapes.values()]
        self._sums = sum(sizes)
        self.buffer = torch.zeros(self._sums + 2 * len(sizes), dtype=torch.int64, device=device)
        totals, magnitudes, counts = self.buffer.split([self._sums, len(sizes), len(sizes)])
        made = [
            Accumulator(name, shape, total.view(shape), magnitudes[i], counts[i])
            for i, ((name, shape), total) in enumerate(zip(shapes.items(), totals.split(sizes)))
        ]
        *self._accumulators, self._loss = made
        self.accumulators = dict(zip(self.parameters, self._accumulators))

    def _register(self) -> None:
        from invar.autograd import exact as registry

        self._hooks = []
        for name, p in self.parameters.items():
            registry.register(p, self.accumulators[name])
            self._hooks.append(p.register_hook(_refusal(name)))

    def _refuse_mixing(self) -> None:
        for path, module in self._model.named_modules() if self._model is not None else ():
            kind = f"{path or 'model'} ({type(module).__name__})"
            if isinstance(module, BATCHES) and module.training:
                raise _native.NotCovered(
                    f"{kind}: in training mode its result joins the units of a batch; use eval(), "
                    "GroupNorm, or gradients that are not exact"
                )
            if isinstance(module, DROPS) and module.training and module.p != 0:
                if type(module).__module__.startswith("torch."):
                    raise _native.NotCovered(
                        f"{kind}: its mask depends on how the batch is split; take that of invar.nn, "
                        "or invar.from_torch_module"
                    )

    def _refuse_masks(self) -> None:
        """Outside of a part the masks of dropouts would depend on the split."""
        from invar.autograd import exact as registry

        if registry.part() is not None or self._model is None:
            return
        for path, module in self._model.named_modules():
            p = module.p if isinstance(module, DROPS) else getattr(module, "dropout", 0.0)
            if module.training and isinstance(p, float) and p > 0:
                raise _native.NotCovered(
                    f"{path or 'model'} ({type(module).__name__}): its mask must not depend on how the "
                    "batch is split: say which units a pass has, with ExactGradients.part()"
                )

    def _refuse_count(self, units):
        """Another number than the part's would give its units the masks of others."""
        from invar.autograd import exact as registry

        part = registry.part()
        if part is not None and part.units != units:
            raise _native.BadInput(
                f"losses: {units} units, in a part of {part.units}: part(first, units) takes the number "
                "of units of the pass"
            )

    @contextlib.contextmanager
    def part(self, first: int, units: int, seed: int = 0) -> Iterator[None]:
        """A context for the forward and backward pass of `units` units from unit `first` of the
        batch on. torch's generator of the host begins with `seed` there, and afterwards goes on as
        before; dropouts that draw from it have masks that do not depend on the parts
        (training.20)."""
        from invar.autograd import exact as registry

        for name, value in (("first", first), ("units", units)):
            if not isinstance(value, int) or value < 0:
                raise _native.BadInput(f"{name}: {value!r}, expected a whole number from 0 on")
        with torch.random.fork_rng(devices=[]), registry.Part(first, units):
            torch.default_generator.manual_seed(seed)
            yield

    def zero(self) -> None:
        """Forgets all contributions, and the gradients that write() made."""
        self._refuse_mixing()
        self.buffer.zero_()
        for p in self.parameters.values():
            p.grad = None

    def backward(self, losses: torch.Tensor) -> None:
        """Adds the losses of units, f32 [U], to the sum of loss(), and the contributions of these
        units to those of the parameters."""
        if losses.ndim != 1 or losses.dtype != torch.float32:
            raise _native.BadInput(
                f"losses: {losses.dtype} {tuple(losses.shape)}, expected one torch.float32 loss for "
                "each unit, [units]"
            )
        self._refuse_masks()
        self._refuse_count(len(losses))
        self._loss.add(losses)
        for accumulator in self._accumulators:
            accumulator.units = len(losses)
        losses.backward(torch.ones_like(losses))

    def check(self, losses: Callable[..., torch.Tensor], batch: tuple[torch.Tensor, ...]) -> None:
        """Refuses a model in which units meet. losses(*batch) gives the losses of the units of a
        tuple of tensors; two units at once must give the integers of one and one. Takes four
        backward passes of single units, and leaves no contributions."""
        buffers = list(self._model.buffers()) if self._model is not None else []
        kept, found = [x.clone() for x in buffers], []
        for parts in (((0, 2),), ((0, 1), (1, 2))):
            self.zero()
            for first, last in parts:
                with self.part(first, last - first):
                    self.backward(losses(*(x[first:last] for x in batch)))
            found.append(self.buffer.clone())
        self.zero()
        for x, before in zip(buffers, kept):
            x.copy_(before)
        together, apart = (x[: self._sums].split(self._sizes) for x in found)
        for accumulator, a, b in zip([*self._accumulators, self._loss], together, apart):
            if not torch.equal(a, b):
                raise _native.NotCovered(
                    f"{accumulator.name}: its sum depends on which units are computed together: "
                    "an operation of the model joins units, or draws random numbers"
                )

    def all_reduce(self, group: Any = None) -> None:
        """Adds the sums of all workers of a torch.distributed group: integers, so that neither
        their order nor their number reaches the bits."""
        torch.distributed.all_reduce(self.buffer, torch.distributed.ReduceOp.SUM, group=group)

    def write(self, divisor: int = 1) -> None:
        """Writes .grad of every parameter: its sum, rounded to f32, divided by `divisor` (the
        number of units for a mean). A parameter without contributions gets None. A sum that may
        have overflowed, or has a contribution that is not finite, is NaN everywhere."""
        _refuse_divisor(divisor)
        used = self.buffer[len(self.buffer) - len(self._accumulators) - 1 :].tolist()
        for p, accumulator, count in zip(self.parameters.values(), self._accumulators, used):
            p.grad = accumulator.value(divisor) if count else None

    def loss(self, divisor: int = 1) -> Any:
        """The sum of the losses, f32 [], divided by `divisor`."""
        _refuse_divisor(divisor)
        return self._loss.value(divisor)

    def close(self) -> None:
        """Gives the parameters back to ordinary gradients."""
        from invar.autograd import exact as registry

        for p, hook in zip(self.parameters.values(), self._hooks):
            registry.unregister(p)
            hook.remove()
        self._hooks = []


def _refuse_divisor(divisor):
    if not divisor > 0:
        raise _native.BadInput(f"divisor: {divisor}, expected the number of units, more than 0")


def _refusal(name):
    def refuse(grad):
        if grad is not None:
            raise _native.NotCovered(
                f"{name}: it got a gradient that is not a sum over single units (a view or a copy of "
                "the parameter was used, an operation that has no rule for units, or one of torch's: "
                "take invar.nn, invar.from_torch_module or invar.reproducible())"
            )

    return refuse
