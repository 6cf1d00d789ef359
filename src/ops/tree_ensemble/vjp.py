"""Trees are constant around almost every row, so they have no gradients."""

from invar.autograd.rules import no_gradient

no_gradient("tree_ensemble")
