"""Adamax, NAdam and RAdam: kin of Adam."""

import math
from typing import Any

import torch
from torch import Tensor

from invar import primitives as p
from invar.optim.composed import Composed, mean, square
from invar.optim.optimizer import Params, at_least, number, within
from invar.optim.rounded import pow_of
from invar.optim.scalars import power


def _options(**given: Any) -> dict[str, Any]:
    """The options of a group, checked."""
    betas = given["betas"] = tuple(given["betas"])
    at_least(0, **{name: given[name] for name in ("lr", "eps", "weight_decay")})
    within(**{"betas[0]": betas[0], "betas[1]": betas[1]})
    return given


def _betas(group: dict[str, Any]) -> tuple[float, float]:
    beta1, beta2 = group["betas"]
    return float(beta1), float(beta2)


class Adamax(Composed):
    """torch.optim.Adamax with reproducible steps (spec: optim.11). State: "step", "exp_avg",
    "exp_inf".

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(
            params,
            _options(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["exp_avg", "exp_inf"]

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        beta1, beta2 = _betas(group)
        rate = number(group, "lr") / (1.0 - power(beta1, count))
        return [rate, beta1, 1.0 - beta1, beta2, number(group, "eps")]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        rate, beta1, rest, beta2, eps = numbers
        m = mean(states[0], g, beta1, rest)
        u = p.max(p.mul(states[1], beta2), p.add(p.abs(g), eps))
        return p.mul(p.div(m, u), rate), [m, u]


class RAdam(Composed):
    """torch.optim.RAdam with reproducible steps (spec: optim.11). State: "step", "exp_avg",
    "exp_avg_sq".

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            _options(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                decoupled_weight_decay=decoupled_weight_decay,
                differentiable=differentiable,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["exp_avg", "exp_avg_sq"]

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        """The last is 0 where the step is not scaled by squares."""
        beta1, beta2 = _betas(group)
        decayed = power(beta2, count)
        most = 2.0 / (1.0 - beta2) - 1.0
        length = most - (2.0 * count) * decayed / (1.0 - decayed)
        scale = 0.0
        if length > 5.0:
            over = ((length - 4.0) * (length - 2.0)) * most
            under = ((most - 4.0) * (most - 2.0)) * length
            scale = math.sqrt(over / under) * math.sqrt(1.0 - decayed)
        rate = number(group, "lr") / (1.0 - power(beta1, count))
        return [rate, beta1, 1.0 - beta1, beta2, 1.0 - beta2, number(group, "eps"), scale]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        rate, beta1, rest1, beta2, rest2, eps, scale = numbers
        m = mean(states[0], g, beta1, rest1)
        v = mean(states[1], square(g), beta2, rest2)
        step = p.mul(m, rate)
        if self._scaled:
            step = p.mul(p.div(step, p.add(p.sqrt(v), eps)), scale)
        return step, [m, v]

    def operation(self, group: dict[str, Any], count: int) -> Any:
        found = super().operation(group, count)
        self._scaled = found[2][-1] != 0.0
        return found


class NAdam(Composed):
    """torch.optim.NAdam with reproducible steps (spec: optim.11). State: "step", "mu_product",
    "exp_avg", "exp_avg_sq".

    Arguments and errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        at_least(0, momentum_decay=momentum_decay)
        super().__init__(
            params,
            _options(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["exp_avg", "exp_avg_sq"]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for state in self.state.values():
            if isinstance(state.get("mu_product"), torch.Tensor):
                state["mu_product"] = state["mu_product"].cpu()

    def _step(
        self, group: dict[str, Any], device: torch.device, count: int, params: list[Tensor]
    ) -> None:
        """Parameters whose products of momenta differ take steps of their own."""
        alike: dict[float, list[Tensor]] = {}
        for x in params:
            alike.setdefault(float(self.state[x].get("mu_product", 1.0)), []).append(x)
        for before, some in alike.items():
            mu = _momentum(group, count)
            self._product = float(torch.tensor(before * mu, dtype=torch.float32))
            super()._step(group, device, count, some)
            for x in some:
                self.state[x]["mu_product"] = torch.tensor(self._product, dtype=torch.float32)

    def numbers(self, group: dict[str, Any], count: int) -> list[float]:
        beta1, beta2 = _betas(group)
        lr, mu, following = (
            number(group, "lr"),
            _momentum(group, count),
            _momentum(group, count + 1),
        )
        return [
            lr * (1.0 - mu) / (1.0 - self._product),
            lr * following / (1.0 - self._product * following),
            beta1,
            1.0 - beta1,
            beta2,
            1.0 - beta2,
            number(group, "eps"),
            1.0 - power(beta2, count),
        ]

    def formula(
        self, group: dict[str, Any], x: Tensor, g: Tensor, states: list[Tensor], *numbers: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        of_gradient, of_mean, beta1, rest1, beta2, rest2, eps, correction = numbers
        m = mean(states[0], g, beta1, rest1)
        v = mean(states[1], square(g), beta2, rest2)
        scale = p.add(p.sqrt(p.div(v, correction)), eps)
        step = p.add(p.mul(p.div(g, scale), of_gradient), p.mul(p.div(m, scale), of_mean))
        return step, [m, v]


def _momentum(group: dict[str, Any], count: int) -> float:
    """beta1 (1 - 0.96^(t momentum_decay) / 2); the power is rounded once."""
    decayed = pow_of(0.96, count * number(group, "momentum_decay"))
    return float(group["betas"][0]) * (1.0 - 0.5 * decayed)
