"""Stochastic gradient descent."""

from typing import Any

from invar import _native
from invar.optim.optimizer import Optimizer, Params, Step, at_least, number


class SGD(Optimizer):
    """torch.optim.SGD with reproducible steps (spec: optim.2 without momentum, optim.3 with it).

    params: tensors of torch.float32, named or not, or dictionaries of groups. foreach and fused are
    accepted and change nothing; differentiable=True and tensors as hyper-parameters are refused
    (invar.NotCovered); numbers out of range raise invar.BadInput, a ValueError."""

    counts = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        at_least(0, lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise _native.BadInput(
                f"nesterov: needs momentum above 0 and dampening 0, got {momentum} and {dampening}"
            )
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
                fused=fused,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["momentum_buffer"] if group["momentum"] != 0 else []

    def operation(self, group: dict[str, Any], count: int) -> Step:
        scalars = [number(group, "lr"), number(group, "weight_decay")]
        if group["momentum"] == 0:
            return "sgd_step", {}, scalars
        kept = 1.0 if count == 1 else 1.0 - number(group, "dampening")
        scalars += [number(group, "momentum"), kept]
        return "momentum_step", {"nesterov": int(group["nesterov"])}, scalars
