import torch
import torch.nn.functional as functional


def cross_entropy_backward(grad, x, target, ignore):
    """The gradient of x from that of the loss of each row."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        loss = functional.cross_entropy(x, target, ignore_index=ignore, reduction="none")
    return torch.autograd.grad(loss, x, grad)[0]


SPELLED = (
    {
        op: lambda c: f"torch.{c.op}({c[0]}, dim={c.get('axis', -1)})"
        for op in ("softmax", "log_softmax")
    }
    | {
        f"{op}_backward": lambda c: (
            f"torch.ops.aten._{c.op}_data({c[0]}, {c[1]}, {c.get('axis', -1)}, torch.float32)"
        )
        for op in ("softmax", "log_softmax")
    }
    | {
        "cross_entropy": lambda c: (
            f"functional.cross_entropy({c[0]}, {c[1]}, ignore_index={c.ignore}, reduction='none')"
        ),
        "cross_entropy_backward": lambda c: (
            f"rooms.softmax.cross_entropy_backward({c[0]}, {c[1]}, {c[2]}, {c.ignore})"
        ),
    }
)
