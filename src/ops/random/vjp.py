"""The gradient of random_dropout is the operation itself: the same elements, the same scale."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, rule

no_gradient("random_bits", "random_uniform")


@rule("random_dropout", saves="others")
def random_dropout(v):
    return [p.random_dropout(v.grad, v[1], v[2], ratio=v.attribute("ratio")), None, None]
