"""Pools, resizing, and padding by values of the input."""

from typing import Any

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


class _MaxPool:
    def forward(self, input: torch.Tensor) -> Any:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class _AvgPool:
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        more = [self.divisor_override] if getattr(self, "divisor_override", None) else []
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            *more,
        )


class _AdaptivePool:
    def forward(self, input: torch.Tensor) -> Any:
        more = [True] if getattr(self, "return_indices", False) else []
        return self._function(input, self.output_size, *more)


class _LPPool:
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


def _module(of, function, form):
    def call(self, *args, **kwargs):
        return getattr(ops, function)(*args, **kwargs)

    made = {"forward": form.forward, "_function": call, "__module__": __name__}
    return counterpart(type(of.__name__, (of,), made))


MaxPool1d = _module(nn.MaxPool1d, "max_pool1d", _MaxPool)
MaxPool2d = _module(nn.MaxPool2d, "max_pool2d", _MaxPool)
MaxPool3d = _module(nn.MaxPool3d, "max_pool3d", _MaxPool)
AvgPool1d = _module(nn.AvgPool1d, "avg_pool1d", _AvgPool)
AvgPool2d = _module(nn.AvgPool2d, "avg_pool2d", _AvgPool)
AvgPool3d = _module(nn.AvgPool3d, "avg_pool3d", _AvgPool)
AdaptiveAvgPool1d = _module(nn.AdaptiveAvgPool1d, "adaptive_avg_pool1d", _AdaptivePool)
AdaptiveAvgPool2d = _module(nn.AdaptiveAvgPool2d, "adaptive_avg_pool2d", _AdaptivePool)
AdaptiveAvgPool3d = _module(nn.AdaptiveAvgPool3d, "adaptive_avg_pool3d", _AdaptivePool)
LPPool1d = _module(nn.LPPool1d, "lp_pool1d", _LPPool)
LPPool2d = _module(nn.LPPool2d, "lp_pool2d", _LPPool)
LPPool3d = _module(nn.LPPool3d, "lp_pool3d", _LPPool)


class _MaxUnpool:
    def forward(self, input: torch.Tensor, indices: torch.Tensor, output_size: Any = None) -> Any:
        return self._function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


MaxUnpool1d = _module(nn.MaxUnpool1d, "max_unpool1d", _MaxUnpool)
MaxUnpool2d = _module(nn.MaxUnpool2d, "max_unpool2d", _MaxUnpool)
MaxUnpool3d = _module(nn.MaxUnpool3d, "max_unpool3d", _MaxUnpool)
AdaptiveMaxPool1d = _module(nn.AdaptiveMaxPool1d, "adaptive_max_pool1d", _AdaptivePool)
AdaptiveMaxPool2d = _module(nn.AdaptiveMaxPool2d, "adaptive_max_pool2d", _AdaptivePool)
AdaptiveMaxPool3d = _module(nn.AdaptiveMaxPool3d, "adaptive_max_pool3d", _AdaptivePool)


def _padding(of, mode):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.pad(input, self.padding, mode)

    made = type(of.__name__, (of,), {"forward": forward, "__module__": __name__})
    return counterpart(made)


ReflectionPad1d = _padding(nn.ReflectionPad1d, "reflect")
ReflectionPad2d = _padding(nn.ReflectionPad2d, "reflect")
ReflectionPad3d = _padding(nn.ReflectionPad3d, "reflect")
ReplicationPad1d = _padding(nn.ReplicationPad1d, "replicate")
ReplicationPad2d = _padding(nn.ReplicationPad2d, "replicate")
ReplicationPad3d = _padding(nn.ReplicationPad3d, "replicate")
CircularPad1d = _padding(nn.CircularPad1d, "circular")
CircularPad2d = _padding(nn.CircularPad2d, "circular")
CircularPad3d = _padding(nn.CircularPad3d, "circular")


class _Interpolating:
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )


@counterpart
class Upsample(nn.Upsample):
    forward = _Interpolating.forward


@counterpart
class UpsamplingNearest2d(nn.UpsamplingNearest2d):
    forward = _Interpolating.forward


@counterpart
class UpsamplingBilinear2d(nn.UpsamplingBilinear2d):
    forward = _Interpolating.forward
