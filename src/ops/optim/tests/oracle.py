"""The outputs of steps of optimisers from spec/ops/optim.md, without the C++ code
(tests/conformance/oracle.py)."""

from oracle import add, canon, div, fma, maximum, mul, sqrt, sub


def sgd(p, g, s, attrs):
    eta, lam = s
    d = fma(lam, p, g)
    return [fma(-eta, d, p)]


def momentum(p, g, b, s, attrs):
    eta, lam, mu, kappa = s
    d = fma(lam, p, g)
    new = fma(mu, b, mul(kappa, d))
    u = fma(mu, new, d) if attrs.get("nesterov", 0) else new
    return [fma(-eta, u, p), new]


def adam(p, g, m, v, s, attrs, most=None):
    sigma, delta, lam, alpha, beta, gamma, rho, eps = s
    d = fma(lam, p, g)
    first = fma(alpha, sub(d, m), m)
    second = fma(gamma, mul(d, d), mul(beta, v))
    largest = second if most is None else maximum(most, canon(second))
    scale = add(div(sqrt(largest), rho), eps)
    new = fma(-sigma, div(first, scale), mul(delta, p))
    return [new, first, second]


def amsgrad(p, g, m, v, w, s, attrs):
    return adam(p, g, m, v, s, attrs, w)


def lion(p, g, m, s, attrs):
    eta, delta, alpha, gamma = s
    r = sub(g, m)
    c = fma(alpha, r, m)
    sign = 1.0 if c > 0 else -1.0 if c < 0 else c
    return [fma(-eta, sign, mul(delta, p)), fma(gamma, r, m)]


def step(of):
    def run(inputs, shapes, out, attrs):
        *operands, scalars = inputs
        found = [of(*one, scalars, attrs) for one in zip(*operands)]
        return [canon(element[row]) for row in range(out[0]) for element in found]

    return run


OPERATIONS = {
    "sgd_step": step(sgd),
    "momentum_step": step(momentum),
    "adam_step": step(adam),
    "amsgrad_step": step(amsgrad),
    "lion_step": step(lion),
}
