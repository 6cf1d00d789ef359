"""Optimisers whose step is a formula of elementwise primitives (spec: optim.11)."""

from typing import Any

from torch import Tensor

from invar import primitives as p
from invar.optim.optimizer import Optimizer, Step, number


class Composed(Optimizer):
    """The base of such optimisers. A class gives the numbers of a step and its formula, in which
    each operation is a primitive whose result is stored as f32."""

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        """Those that the formula takes, in binary64 (optim.7, optim.11)."""
        raise NotImplementedError

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """(what is subtracted from the parameters, the new states) of parameters x, gradients g and
        states that lie end to end; numbers: f32 without dimensions."""
        raise NotImplementedError

    def operation(self, group: dict[str, Any], count: int) -> Step:
        decay, lr = number(group, "weight_decay"), number(group, "lr")
        factor = 1.0 - lr * decay if group.get("decoupled_weight_decay") else decay
        return type(self).__name__, {}, [factor, *self.numbers(group, count)]

    def computed(
        self,
        group: dict[str, Any],
        step: Step,
        x: Tensor,
        g: Tensor,
        states: list[Tensor],
        rounded: Tensor,
    ) -> tuple[Tensor, list[Tensor]]:
        decay, *numbers = rounded.unbind()
        if group["weight_decay"] != 0:
            if group.get("decoupled_weight_decay"):
                x = p.mul(x, decay)
            else:
                g = p.add(g, p.mul(x, decay))
        update, states = self.formula(group, x, g, states, *numbers)
        return p.sub(x, update), states


def mean(old: Tensor, new: Tensor, kept: Tensor, rest: Tensor) -> Tensor:
    """old * kept + new * rest: a moving mean."""
    return p.add(p.mul(old, kept), p.mul(new, rest))


def square(x: Tensor) -> Tensor:
    return p.mul(x, x)
