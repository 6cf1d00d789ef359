"""RMSprop, Adagrad and Adadelta: steps that are scaled by the gradients of each element."""

from typing import Any

import torch
from torch import Tensor

from invar import primitives as p
from invar.optim.composed import Composed, mean, square
from invar.optim.optimizer import Params, at_least, number


class RMSprop(Composed):
    """torch.optim.RMSprop with reproducible steps (spec: optim.11). State: "step", "square_avg",
    "momentum_buffer" with momentum, "grad_avg" where centered.

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        at_least(0, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                alpha=alpha,
                eps=eps,
                centered=centered,
                weight_decay=weight_decay,
                capturable=capturable,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        moved, centered = group["momentum"] > 0, bool(group["centered"])
        return ["square_avg"] + ["momentum_buffer"] * moved + ["grad_avg"] * centered

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        alpha = number(group, "alpha")
        return [
            number(group, "lr"),
            alpha,
            1.0 - alpha,
            number(group, "eps"),
            number(group, "momentum"),
        ]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        lr, alpha, rest, eps, momentum = numbers
        old = dict(zip(self.state_names(group), states))
        new = {"square_avg": mean(old["square_avg"], square(g), alpha, rest)}
        scale = new["square_avg"]
        if "grad_avg" in old:
            new["grad_avg"] = mean(old["grad_avg"], g, alpha, rest)
            scale = p.sub(scale, square(new["grad_avg"]))
        step = p.div(g, p.add(p.sqrt(scale), eps))
        if "momentum_buffer" in old:
            step = new["momentum_buffer"] = p.add(p.mul(old["momentum_buffer"], momentum), step)
        return p.mul(step, lr), [new[name] for name in old]


class Adagrad(Composed):
    """torch.optim.Adagrad with reproducible steps (spec: optim.11). State: "step" and "sum", which
    are there from the start, as torch's.

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        at_least(
            0,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(
            params,
            dict(
                lr=lr,
                lr_decay=lr_decay,
                eps=eps,
                weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                fused=fused,
            ),
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for x in group["params"]:
            first = float(group["initial_accumulator_value"])
            self.state[x] = {"step": torch.tensor(0.0), "sum": torch.full_like(x, first).detach()}

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["sum"]

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        rate = number(group, "lr") / (1.0 + (count - 1) * number(group, "lr_decay"))
        return [rate, number(group, "eps")]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        rate, eps = numbers
        total = p.add(states[0], square(g))
        return p.mul(p.div(g, p.add(p.sqrt(total), eps)), rate), [total]


class Adadelta(Composed):
    """torch.optim.Adadelta with reproducible steps (spec: optim.11). State: "step", "square_avg",
    "acc_delta".

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        at_least(0, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        at_least(0, **{"1 - rho": 1 - rho})
        super().__init__(
            params,
            dict(
                lr=lr,
                rho=rho,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                capturable=capturable,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["square_avg", "acc_delta"]

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        rho = number(group, "rho")
        return [number(group, "lr"), rho, 1.0 - rho, number(group, "eps")]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        lr, rho, rest, eps = numbers
        squares = mean(states[0], square(g), rho, rest)
        root = lambda v: p.sqrt(p.add(v, eps))
        delta = p.mul(p.div(root(states[1]), root(squares)), g)
        return p.mul(delta, lr), [squares, mean(states[1], square(delta), rho, rest)]
