"""Sums in fixed point are integers: they have no gradient."""

from invar.autograd.rules import no_gradient

no_gradient("fixed_magnitude", "fixed_matmul", "fixed_sum", "fixed_value")
