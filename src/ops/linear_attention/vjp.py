"""Linear attention has no gradients yet: its updates depend on all rows before them."""

from invar.autograd.rules import no_gradient

no_gradient("gated_delta_rule", "gated_linear_attention")
