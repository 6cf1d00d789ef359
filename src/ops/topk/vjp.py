"""Indices have no gradients; values are taken with gather_elements, which has."""

from invar.autograd.rules import no_gradient

no_gradient("topk")
