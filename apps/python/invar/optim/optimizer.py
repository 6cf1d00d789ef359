"""What the optimisers share: options, and steps over tensors that are joined into few calls."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from invar import _native
from invar import primitives as p
from invar.optim.flat import buckets, joined, split_into

Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Step = tuple[str, dict[str, int], list[float]]  # operation, attributes, scalars

# Options of torch's optimisers that change what a step is. foreach and fused choose an
# implementation, which reaches no bit here.
REFUSED = {"differentiable": False, "capturable": False}


def number(group: dict[str, Any], name: str) -> float:
    """A hyper-parameter as a Python float; tensors would be read from their device each step."""
    value = group[name]
    if isinstance(value, torch.Tensor):
        raise _native.NotCovered(f"{name}: a tensor; give a Python number")
    return float(value)


def at_least(low: float, **values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, torch.Tensor) and not value >= low:
            raise _native.BadInput(f"{name}: expected at least {low}, got {value}")


def within(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, torch.Tensor) and not 0 <= value < 1:
            raise _native.BadInput(f"{name}: expected at least 0 and below 1, got {value}")


class Optimizer(torch.optim.Optimizer):
    """The base of invar.optim. A class names the state tensors that a group has, and says which
    operation is a step, with which scalars."""

    def state_names(self, group: dict[str, Any]) -> list[str]:
        """The names of the state tensors in the order of the operation's operands."""
        raise NotImplementedError

    def operation(self, group: dict[str, Any], count: int) -> Step:
        """(name, attributes, scalars) of step `count` (from 1; scalars by spec optim.7)."""
        raise NotImplementedError

    def computed(
        self,
        group: dict[str, Any],
        step: Step,
        x: Tensor,
        g: Tensor,
        states: list[Tensor],
        rounded: Tensor,
    ) -> tuple[Tensor, list[Tensor]]:
        """(new parameters, new states) of parameters, gradients and states that lie end to end."""
        result = p.call(step[0], x, g, *states, rounded, **step[1])
        return result[0], self.new_states(states, result)

    def new_states(self, states: list[Tensor], result: Tensor) -> list[Tensor]:
        """The new state tensors, joined, from the old ones and the operation's result."""
        return list(result[1:])

    counts = True  # whether the state has the number of steps

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._check(self.param_groups[-1], len(self.param_groups) - 1)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state dict of this class, or of torch.optim's class of the same name."""
        super().load_state_dict(state_dict)
        self.__dict__.pop("_joined", None)
        for i, group in enumerate(self.param_groups):
            self._check(group, i)
        for state in self.state.values():
            if isinstance(state.get("step"), torch.Tensor):
                state["step"] = state["step"].cpu()

    def _check(self, group: dict[str, Any], number_of_group: int) -> None:
        where = f"{type(self).__name__}: group {number_of_group}"
        for name, default in REFUSED.items():
            if group.get(name, default) != default:
                raise _native.NotCovered(f"{where}: {name}={group[name]}; covered is {default}")
        for name, value in group.items():
            several = value if isinstance(value, tuple | list) and name != "params" else [value]
            if any(isinstance(v, torch.Tensor) for v in several):
                raise _native.NotCovered(f"{where}: {name} is a tensor; give a Python number")
        for i, x in enumerate(group["params"]):
            if x.dtype != torch.float32 or x.layout != torch.strided:
                raise _native.NotCovered(
                    f"{where}: parameter {i} is {x.dtype}, {x.layout}; covered is torch.float32, strided"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step (spec: optim.1 to optim.7). Returns the closure's result."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            alike: dict[
                tuple[torch.device, int], list[Tensor]
            ] = {}  # tensors that one call can take: on one device, at the same step
            for i, x in enumerate(group["params"]):
                if x.grad is None:
                    continue
                if x.grad.dtype != torch.float32 or x.grad.layout != torch.strided:
                    raise _native.NotCovered(
                        f"{type(self).__name__}: the gradient of parameter {i} is {x.grad.dtype}, "
                        f"{x.grad.layout}; covered is torch.float32, strided"
                    )
                alike.setdefault((x.device, self._count(group, x)), []).append(x)
            for (device, count), params in alike.items():
                self._step(group, device, count, params)
        return loss

    def _count(self, group: dict[str, Any], x: Tensor) -> int:
        """The number of the step that comes for a parameter."""
        state = self.state.get(x, {})
        if self.counts:
            return int(state["step"]) + 1 if "step" in state else 1
        return 1 if all(state.get(name) is None for name in self.state_names(group)) else 2

    def _step(
        self, group: dict[str, Any], device: torch.device, count: int, params: list[Tensor]
    ) -> None:
        step = self.operation(group, count)
        rounded = torch.tensor(step[2], dtype=torch.float64).to(torch.float32)
        rounded = rounded.to(device, non_blocking=True)
        names = self.state_names(group)
        for part in buckets(params):
            grads = joined([x.grad for x in part if x.grad is not None])
            if group.get("maximize"):
                grads = p.neg(grads)
            kept = self._kept(part, names, count) if names else []
            found, states = self.computed(group, step, joined(part), grads, kept, rounded)
            split_into(part, found)
            for old, new in zip(kept, states):
                old.copy_(new)
        steps = torch.full([len(params)], float(count)).unbind() if self.counts else []
        for x, done in zip(params, steps):
            self.state[x]["step"] = done

    def _kept(self, part: list[Tensor], names: list[str], count: int) -> list[Tensor]:
        """For each name the state of these parameters, end to end; zeros before the first step. The
        tensors in self.state are views of it, so that a step writes them by one copy."""
        known = self.__dict__.setdefault("_joined", {})  # a copied optimiser has none
        states = [self.state[x] for x in part]
        rows, views, places = known.get(id(part[0]), ([], [], []))
        found = [state.get(name) for name in names for state in states]
        if len(found) == len(views) and all(a is b for a, b in zip(found, views)):
            if [x.data_ptr() for x in views] == places:  # nobody set their data
                return rows
        rows, views = [], []
        for i, name in enumerate(names):
            old = found[i * len(part) : (i + 1) * len(part)]
            given = [x for x in old if x is not None]
            if given and len(given) < len(part) or not given and count > 1:
                raise _native.BadInput(
                    f"{type(self).__name__}: the state before step {count} lacks '{name}'"
                )
            sizes = [x.numel() for x in part]
            row = part[0].new_empty(sum(sizes))
            row.copy_(joined(given)) if given else row.zero_()
            made = [v.view(x.shape) for v, x in zip(row.split(sizes), part)]
            for state, view in zip(states, made):
                state[name] = view
            rows.append(row)
            views += made
        known[id(part[0])] = rows, views, [x.data_ptr() for x in views]
        return rows
