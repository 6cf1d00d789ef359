"""Steps of optimisers are taken outside of the graph of gradients."""

from invar.autograd.rules import no_gradient

no_gradient("adam_step", "amsgrad_step", "lion_step", "momentum_step", "sgd_step")
