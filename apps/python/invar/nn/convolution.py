"""Convolutions in one, two and three dimensions."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


def _convolved(module, function, input, weight, bias):
    """As torch's _conv_forward; padding that is not of zeros moves data before."""
    padding = module.padding
    if module.padding_mode != "zeros":
        mode = module.padding_mode
        input = ops.pad(input, module._reversed_padding_repeated_twice, mode=mode)
        padding = 0
    return function(input, weight, bias, module.stride, padding, module.dilation, module.groups)


@counterpart
class Conv1d(nn.Conv1d):
    def _conv_forward(self, input, weight, bias):
        return _convolved(self, ops.conv1d, input, weight, bias)


@counterpart
class Conv2d(nn.Conv2d):
    def _conv_forward(self, input, weight, bias):
        return _convolved(self, ops.conv2d, input, weight, bias)


@counterpart
class Conv3d(nn.Conv3d):
    def _conv_forward(self, input, weight, bias):
        return _convolved(self, ops.conv3d, input, weight, bias)


def _transposed(module, function, dimensions, input, output_size):
    padding = module._output_padding(
        input,
        output_size,
        module.stride,
        module.padding,
        module.kernel_size,
        dimensions,
        module.dilation,
    )
    return function(
        input,
        module.weight,
        module.bias,
        module.stride,
        module.padding,
        padding,
        module.groups,
        module.dilation,
    )


@counterpart
class ConvTranspose1d(nn.ConvTranspose1d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return _transposed(self, ops.conv_transpose1d, 1, input, output_size)


@counterpart
class ConvTranspose2d(nn.ConvTranspose2d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return _transposed(self, ops.conv_transpose2d, 2, input, output_size)


@counterpart
class ConvTranspose3d(nn.ConvTranspose3d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return _transposed(self, ops.conv_transpose3d, 3, input, output_size)
