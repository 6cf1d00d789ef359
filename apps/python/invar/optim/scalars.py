"""The scalars of steps (spec: optim.7): binary64 operations that every machine computes alike. C's
pow and cos are not among these."""

import math


def power(base: float, exponent: int) -> float:
    """base ** exponent for a whole exponent >= 0, by the multiplications of optim.7."""
    result = 1.0
    while exponent > 0:
        if exponent % 2:
            result *= base
        base *= base
        exponent //= 2
    return result


def adam_scalars(
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    count: int,
) -> list[float]:
    """Of adam_step and amsgrad_step in the order of optim.4."""
    return [
        lr / (1.0 - power(beta1, count)),
        1.0 - lr * weight_decay if decoupled else 1.0,
        0.0 if decoupled else weight_decay,
        1.0 - beta1,
        beta2,
        1.0 - beta2,
        math.sqrt(1.0 - power(beta2, count)),
        eps,
    ]
