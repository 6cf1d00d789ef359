"""The gradient of dropout is dropout of the gradient: the same elements, the same scale."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, rule

no_gradient("random_bits", "random_uniform")


@rule("dropout")
def dropout(v):
    return [p.dropout(v.grad, v[1], v[2], ratio=v.attribute("ratio", 0.5)), None, None]
