"""torch's computation of gradients, with the modes of reproducible() in force while it runs: torch
switches them off inside of a function that they see, but checkpoints compute their forward pass
again there."""

import torch
from torch.autograd import _make_grads, graph

from invar.autograd.refusal import gradients_from_here


def several(x):
    return (x,) if x is None or isinstance(x, torch.Tensor | graph.GradientEdge) else tuple(x)


def backward(mode, tensors, grad_tensors=None, retain_graph=None, create_graph=False,
             grad_variables=None, inputs=None):  # fmt: skip
    if grad_variables is not None:
        raise RuntimeError("backward: grad_variables: torch has no such argument any more")
    gradients_from_here()
    tensors = several(tensors)
    grads = several(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    grads = _make_grads(tensors, grads, is_grads_batched=False)
    with mode:
        graph._engine_run_backward(
            tensors,
            grads,
            create_graph if retain_graph is None else retain_graph,
            create_graph,
            () if inputs is None else several(inputs),
            allow_unreachable=True,
            accumulate_grad=True,
        )


def tensor_backward(
    mode, tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None
):
    backward(mode, tensor, gradient, retain_graph, create_graph, inputs=inputs)


def grad(mode, outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False,
         only_inputs=True, allow_unused=None, is_grads_batched=False,
         materialize_grads=False):  # fmt: skip
    if is_grads_batched or not only_inputs:
        return torch.autograd.grad(
            outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
    gradients_from_here()
    outputs, inputs = several(outputs), several(inputs)
    grads = several(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    grads = _make_grads(outputs, grads, is_grads_batched=False)
    with mode:
        found = graph._engine_run_backward(
            outputs,
            grads,
            create_graph if retain_graph is None else retain_graph,
            create_graph,
            inputs,
            materialize_grads if allow_unused is None else allow_unused,
            accumulate_grad=False,
        )
    if not materialize_grads:
        return found
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found))


ENGINE = {
    torch.Tensor.backward: tensor_backward,
    torch.autograd.backward: backward,
    torch.autograd.grad: grad,
}
