"""Gradients of parameters as exact sums over units (spec/training.md training.1 to training.6)."""

import torch

from invar import _native, primitives
from invar.training import fixed


class Accumulator:
    """Where the contributions of one parameter go: integers, in the buffer of ExactGradients."""

    def __init__(self, name, shape, total, magnitude, count):
        self.name, self.shape = name, tuple(shape)
        self.total, self.magnitude, self.count = total, magnitude, count

    def add(self, per_unit):
        """Adds the contributions of U units: f32 [U, *shape of the parameter]. A parameter that is
        used more than once gets contributions of each use (training.2)."""
        per_unit = per_unit.detach()
        if per_unit.dtype != torch.float32:
            raise _native.NotCovered(
                f"{self.name}: contributions of {per_unit.dtype}; only float32"
            )
        if tuple(per_unit.shape[1:]) != self.shape:
            raise _native.BadInput(
                f"{self.name}: contributions of shape {tuple(per_unit.shape)}, expected "
                f"[units, {', '.join(map(str, self.shape))}]"
            )
        self.add_sums(fixed.fixed_sum(per_unit), fixed.fixed_magnitude(per_unit), len(per_unit))

    def add_sums(self, total, magnitude, units):
        """Adds what fixed_sum and fixed_magnitude made of the contributions of `units` units."""
        self.total += total.reshape(self.shape)  # modulo 2^64
        self.magnitude += magnitude
        self.count += units

    def value(self, divisor=1):
        """The sum as f32, divided by `divisor` where that is not 1: two roundings."""
        found = fixed.fixed_value(self.total, self.magnitude)
        if divisor == 1:
            return found
        return primitives.div(
            found, torch.tensor(float(divisor), dtype=torch.float32, device=found.device)
        )


MIXES = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)


class ExactGradients:
    """Sums the gradients of a model's parameters over units, exactly: any split of a batch into
    micro-batches and over workers gives the same bits.

    A unit is an index of axis 0 of the batch. The loss is a vector with one value for each unit;
    its backward pass hands the contribution of every unit to the accumulators, and .grad stays None
    until write().

        exact = invar.training.ExactGradients(model)
        exact.zero()
        for part in micro_batches:
            losses = loss(model(part))  # [units]
            exact.add_losses(losses)
            losses.backward(torch.ones_like(losses))
        exact.all_reduce()  # with torch.distributed
        exact.write(divisor=units)

    model: a torch.nn.Module, or (name, parameter) pairs. Parameters that require no gradient are
    left alone. Refused by name: parameters that are not float32; BatchNorm and Dropout in training
    mode, whose results depend on the split; a parameter that gets a gradient which is not of single
    units. Only eager mode."""

    def __init__(self, model):
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

    def _allocate(self, device):
        """One buffer of integers, so that workers join theirs with one call."""
        shapes = {name: p.shape for name, p in self.parameters.items()} | {"loss": torch.Size(())}
        sizes = [shape.numel() for shape in shapes.values()]
        self.buffer = torch.zeros(sum(sizes) + 2 * len(sizes), dtype=torch.int64, device=device)
        totals, magnitudes, counts = self.buffer.split([sum(sizes), len(sizes), len(sizes)])
        made = [
            Accumulator(name, shape, total.view(shape), magnitudes[i], counts[i])
            for i, ((name, shape), total) in enumerate(zip(shapes.items(), totals.split(sizes)))
        ]
        *self._accumulators, self._loss = made
        self.accumulators = dict(zip(self.parameters, self._accumulators))

    def _register(self):
        from invar.autograd import exact as registry

        self._hooks = []
        for name, p in self.parameters.items():
            registry.register(p, self.accumulators[name])
            self._hooks.append(p.register_hook(_refusal(name)))

    def _refuse_mixing(self):
        for path, module in self._model.named_modules() if self._model is not None else ():
            if not (isinstance(module, MIXES) and module.training):
                continue
            if isinstance(module, torch.nn.modules.dropout._DropoutNd) and module.p == 0:
                continue
            raise _native.NotCovered(
                f"{path or 'model'} ({type(module).__name__}): in training mode its result depends "
                "on how the batch is split; use eval(), or gradients that are not exact"
            )

    def zero(self):
        """Forgets all contributions, and the gradients that write() made."""
        self._refuse_mixing()
        self.buffer.zero_()
        for p in self.parameters.values():
            p.grad = None

    def add_losses(self, losses):
        """Adds the losses of units, f32 [U], to the sum of loss()."""
        if losses.ndim != 1:
            raise _native.BadInput(
                f"losses: shape {tuple(losses.shape)}, expected one loss for each unit, [units]"
            )
        self._loss.add(losses)

    def all_reduce(self, group=None):
        """Adds the sums of all workers of a torch.distributed group: integers, so that neither
        their order nor their number reaches the bits."""
        torch.distributed.all_reduce(self.buffer, torch.distributed.ReduceOp.SUM, group=group)

    def write(self, divisor=1):
        """Writes .grad of every parameter: its sum, rounded to f32, divided by `divisor` (the number
        of units for a mean). A parameter without contributions gets None. A sum that may have
        overflowed, or has a contribution that is not finite, is NaN everywhere."""
        used = self.buffer[len(self.buffer) - len(self._accumulators) - 1 :].tolist()
        for p, accumulator, count in zip(self.parameters.values(), self._accumulators, used):
            p.grad = accumulator.value(divisor) if count else None

    def loss(self, divisor=1):
        """The sum of the losses, f32 [], divided by `divisor`."""
        return self._loss.value(divisor)

    def close(self):
        """Gives the parameters back to ordinary gradients."""
        from invar.autograd import exact as registry

        for p, hook in zip(self.parameters.values(), self._hooks):
            registry.unregister(p)
            hook.remove()
        self._hooks = []


def _refusal(name):
    def refuse(grad):
        if grad is not None:
            raise _native.NotCovered(
                f"{name}: it got a gradient that is not a sum over single units (a view or a copy of "
                "the parameter was used, or an operation that has no rule for units)"
            )

    return refuse
