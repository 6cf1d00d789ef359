"""Indices of selected boxes have no gradients."""

from invar.autograd.rules import no_gradient

no_gradient("nms")
