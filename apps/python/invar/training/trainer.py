"""Steps of a training, whose bits do not depend on how they are computed."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from invar import _native, primitives
from invar.reproducibility import reproducible
from invar.training.digest import Digest
from invar.training.exact import ExactGradients
from invar.training.parallel import joined, share


@dataclass(frozen=True, slots=True)
class Facts:
    """What a step says of itself: the digest of its batch, the settings of the optimiser, the
    loss."""

    data: str
    settings: dict[str, Any]
    loss: float


def step_seed(seed: int, index: int) -> int:
    """The seed of step `index`, 32 bits (training.20)."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{index}".encode()).digest()[:4], "little")


class Trainer:
    """A model, an optimiser and data: all that decides the bits of a training.

    model       a torch.nn.Module
    optimizer   of invar.optim or torch.optim, of the model's parameters
    batches     step -> the tensors of its batch, a tuple; axis 0 of each is that of units
    loss        loss(model, *tensors) -> f32 [units]: the loss of each unit
    schedule    step -> {"lr": number, ...} for all parameter groups, or None: as they are

    Forward and backward passes and the optimiser run under invar.reproducible(): what is torch's in
    them is Invar's, or is refused. batches and schedule run as they are.

    micro_batch, the number of units that are computed at once (None: all), and the workers of a
    torch.distributed group reach no bit. seed: of random numbers that torch's generator draws in
    the forward pass, those of dropout; each step has its own (training.20). exact=False takes
    ordinary gradients of the mean of the losses of the whole batch, for models that ExactGradients
    refuses (training.7); then there are neither micro-batches nor workers.

    A subclass may replace step(), state(), load_state() and constants() for a training of another
    form."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Callable[[int], Iterable[torch.Tensor]],
        loss: Callable[..., torch.Tensor],
        *,
        schedule: Callable[[int], Mapping[str, Any]] | None = None,
        micro_batch: int | None = None,
        group: Any = None,
        exact: bool = True,
        seed: int = 0,
    ) -> None:
        self.model, self.optimizer, self.batches, self.loss = model, optimizer, batches, loss
        self.schedule, self.micro_batch, self.group = schedule, micro_batch, group
        self.exact, self.seed = ExactGradients(model) if exact else None, seed
        self._checked = False  # whether units are seen to be apart, which the first step does
        names = {id(p): name for name, p in model.named_parameters()}
        self._named = {}
        for group_ in optimizer.param_groups:
            for p in group_["params"]:
                if id(p) not in names:
                    raise _native.BadInput("optimizer: it has a parameter that the model has not")
                self._named[names[id(p)]] = p
        missing = [
            n for n, p in model.named_parameters() if p.requires_grad and n not in self._named
        ]
        if missing:
            raise _native.BadInput(f"optimizer: it has no parameter {missing[0]!r} of the model")

    def step(self, index: int) -> Facts:
        """Computes step `index` (from 0) and returns its Facts."""
        batch = self.batches(index)
        if isinstance(batch, torch.Tensor):
            raise _native.BadInput(
                f"step {index}: the batch is one tensor, expected a tuple of them"
            )
        batch = tuple(batch)
        units = self._units(index, batch)
        settings = self._settings(index)
        seed = step_seed(self.seed, index)
        with reproducible():
            loss = (self._exact if self.exact else self._ordinary)(batch, units, seed)
            self.optimizer.step()
        if self.exact is None:
            self.optimizer.zero_grad(set_to_none=True)
        named = {str(i): tensor for i, tensor in enumerate(batch)}
        return Facts(Digest(named).root, settings, loss)

    def _units(self, index, batch):
        sizes = {len(x) if isinstance(x, torch.Tensor) and x.ndim else -1 for x in batch}
        if len(sizes) != 1 or min(sizes) < 1:
            raise _native.BadInput(
                f"step {index}: the batch must be tensors with the same number of units at axis 0"
            )
        return sizes.pop()

    def _settings(self, index):
        for name, value in (self.schedule(index) if self.schedule else {}).items():
            for group in self.optimizer.param_groups:
                if name not in group:
                    raise _native.BadInput(f"schedule: the optimizer has no setting {name!r}")
                group[name] = value
        groups = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self.optimizer.param_groups
        ]
        return {f"{i}.{name}": v for i, group in enumerate(groups) for name, v in group.items()}

    def _losses(self, *part):
        losses = self.loss(self.model, *part)
        if losses.shape != (len(part[0]),):
            raise _native.BadInput(
                f"loss: shape {tuple(losses.shape)}, expected one loss for each unit, [{len(part[0])}]"
            )
        return losses

    def _exact(self, batch, units, seed):
        first, last = share(units, self.group)
        size = units if self.micro_batch is None else self.micro_batch
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise _native.BadInput(f"micro_batch: {size!r} is no number of units, 1 or more")
        if not self._checked and units > 1:
            self.exact.check(self._losses, batch)
            self._checked = True
        self.exact.zero()
        for begin in range(first, last, size):
            part = tuple(x[begin : min(begin + size, last)] for x in batch)
            with self.exact.part(begin, len(part[0]), seed):
                self.exact.backward(self._losses(*part))
        if joined(self.group):
            self.exact.all_reduce(self.group)
        self.exact.write(divisor=units)
        return self.exact.loss(divisor=units).item()

    def _ordinary(self, batch, units, seed):
        if self.micro_batch or joined(self.group):
            raise _native.NotCovered("micro-batches and workers need exact gradients")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            loss = primitives.reduce_mean(self._losses(*batch), axes=[0], keepdims=0)
            loss.backward()
        return loss.item()

    def state(self) -> dict[str, Any]:
        """All that steps change, by name: trainable parameters, buffers, the optimiser's tensors
        and numbers (training.10)."""
        found = {f"model.{name}": p for name, p in self._named.items()}
        found |= {f"model.{name}": b for name, b in self.model.named_buffers()}
        for name, p in self._named.items():
            for key, value in self.optimizer.state.get(p, {}).items():
                if value is not None:
                    found[f"optimizer.{name}.{key}"] = value
        return found

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes a state that state() gave."""
        held = {f"model.{name}": x for name, x in self.model.named_buffers()}
        held |= {f"model.{name}": p for name, p in self._named.items()}
        optimizer = {name: value for name, value in state.items() if name not in held}
        for name, tensor in held.items():
            if name not in state or state[name].shape != tensor.shape:
                raise _native.BadInput(f"state: no tensor {name!r} of shape {tuple(tensor.shape)}")
            tensor.copy_(state[name])
        self.optimizer.state.clear()
        for name, p in self._named.items():
            prefix = f"optimizer.{name}."
            for full in [
                n for n in optimizer if n.startswith(prefix) and "." not in n[len(prefix) :]
            ]:
                value = optimizer.pop(full)
                if isinstance(value, torch.Tensor):  # a number of steps stays on the host
                    value = value.clone().to(p.device if value.ndim else value.device)
                self.optimizer.state[p][full[len(prefix) :]] = value
        if optimizer:
            raise _native.BadInput(f"state: {min(optimizer)!r} is not of this training")

    def constants(self) -> dict[str, torch.Tensor]:
        """What steps read and do not change: the model's parameters that are not trained."""
        return {n: p for n, p in self.model.named_parameters() if n not in self._named}
