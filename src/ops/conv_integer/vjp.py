"""Convolutions of integers have no gradients."""

from invar.autograd.rules import no_gradient

no_gradient("conv_integer")
