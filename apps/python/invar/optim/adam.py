"""Adam and AdamW, with or without AMSGrad."""

from typing import Any

from torch import Tensor

from invar import primitives as p
from invar.optim.optimizer import Optimizer, Params, Step, at_least, number, within
from invar.optim.scalars import adam_scalars


class Adam(Optimizer):
    """torch.optim.Adam with reproducible steps (spec: optim.4; with amsgrad, optim.5).

    params: tensors of torch.float32, named or not, or dictionaries of groups. foreach and fused are
    accepted and change nothing; capturable=True, differentiable=True and tensors as
    hyper-parameters are refused (invar.NotCovered); numbers out of range raise invar.BadInput, a
    ValueError."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        within(**{"betas[0]": betas[0], "betas[1]": betas[1]})
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=tuple(betas),
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])

    def operation(self, group: dict[str, Any], count: int) -> Step:
        scalars = adam_scalars(
            number(group, "lr"),
            float(group["betas"][0]),
            float(group["betas"][1]),
            number(group, "eps"),
            number(group, "weight_decay"),
            group.get("decoupled_weight_decay", False),
            count,
        )
        return "amsgrad_step" if group["amsgrad"] else "adam_step", {}, scalars

    def new_states(self, states: list[Tensor], result: Tensor) -> list[Tensor]:
        return [*result[1:], *(p.max(most, result[2]) for most in states[2:])]


class AdamW(Adam):
    """torch.optim.AdamW: Adam whose weight decay shrinks the parameters directly. Arguments and
    errors as those of invar.optim.Adam."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:  # torch before 2.7 has no such key
            group["decoupled_weight_decay"] = True
