"""Lion: steps of one size, in the direction of the sign of a mean of gradients."""

from typing import Any

from invar.optim.optimizer import Optimizer, Params, Step, at_least, number, within


class Lion(Optimizer):
    """The optimiser of "Symbolic Discovery of Optimization Algorithms" (Chen et al., 2023; torch
    has none), with decoupled weight decay (spec: optim.6). State: "exp_avg".

    params: tensors of torch.float32, named or not, or dictionaries of groups. Numbers out of range
    raise invar.BadInput, a ValueError; tensors as hyper-parameters are refused
    (invar.NotCovered)."""

    counts = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        at_least(0, lr=lr, weight_decay=weight_decay)
        within(**{"betas[0]": betas[0], "betas[1]": betas[1]})
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=tuple(betas),
                weight_decay=weight_decay,
                maximize=maximize,
                foreach=foreach,
            ),
        )

    def state_names(self, group: dict[str, Any]) -> list[str]:
        return ["exp_avg"]

    def operation(self, group: dict[str, Any], count: int) -> Step:
        lr, decay = number(group, "lr"), number(group, "weight_decay")
        beta1, beta2 = map(float, group["betas"])
        return "lion_step", {}, [lr, 1.0 - lr * decay, 1.0 - beta1, 1.0 - beta2]
