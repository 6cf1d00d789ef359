"""Normalisations."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


@counterpart
class LayerNorm(nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@counterpart
class RMSNorm(nn.RMSNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.rms_norm(x, self.normalized_shape, self.weight, self.eps)


@counterpart
class GroupNorm(nn.GroupNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm:
    """torch's rules for running statistics; momentum=None is their plain average."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return ops.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            of_batch,
            momentum,
            self.eps,
        )


class _InstanceNorm:
    def _apply_instance_norm(self, input):
        return ops.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


@counterpart
class BatchNorm1d(nn.BatchNorm1d):
    forward = _BatchNorm.forward


@counterpart
class BatchNorm2d(nn.BatchNorm2d):
    forward = _BatchNorm.forward


@counterpart
class BatchNorm3d(nn.BatchNorm3d):
    forward = _BatchNorm.forward


@counterpart
class InstanceNorm1d(nn.InstanceNorm1d):
    _apply_instance_norm = _InstanceNorm._apply_instance_norm


@counterpart
class InstanceNorm2d(nn.InstanceNorm2d):
    _apply_instance_norm = _InstanceNorm._apply_instance_norm


@counterpart
class InstanceNorm3d(nn.InstanceNorm3d):
    _apply_instance_norm = _InstanceNorm._apply_instance_norm


@counterpart
class LocalResponseNorm(nn.LocalResponseNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
