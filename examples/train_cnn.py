"""Trains a small convolutional network on the handwritten digits of scikit-learn: the same weights,
logits and losses on every machine.

python examples/train_cnn.py [--steps 400] [--device cuda] [--micro-batch 16] [--workers 4]"""

import math

import invar
import numpy as np
import torch
from invar import nn, ops, optim
from invar import training as t

UNITS, TRAINED = 32, 1500  # images of a step; images that are trained on, of 1,797


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.first_norm = nn.GroupNorm(4, 16)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.second_norm = nn.GroupNorm(4, 32)
        self.classes = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        x = ops.relu(self.first_norm(self.first(images)))
        x = ops.max_pool2d(x, 2)
        x = ops.relu(self.second_norm(self.second(x)))
        x = ops.max_pool2d(x, 2)
        return self.classes(x.flatten(1))


def initialise(model, seed=0):
    """Weights uniform in ±sqrt(3 / inputs), biases 0, from numbers that are the same everywhere."""
    generator = invar.Generator(seed)
    with torch.no_grad():
        for name, w in model.named_parameters():
            if w.ndim > 1:
                bound = torch.tensor(math.sqrt(3 / w[0].numel()), dtype=torch.float32)
                drawn = ops.rand(*w.shape, generator=generator)
                w.copy_(ops.mul(ops.sub(ops.mul(drawn, 2.0), 1.0), bound))
            elif name.endswith("bias"):
                w.zero_()


def digits():
    """Images f32 [1797, 1, 8, 8] in sixteenths, and their classes."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    images = torch.from_numpy(images.astype(np.float32) / np.float32(16))  # exact
    return images.reshape(-1, 1, 8, 8), torch.from_numpy(classes.astype(np.int64))


def loss(model, images, classes):
    return ops.cross_entropy(model(images), classes, reduction="none")


def training(device="cpu", lr=2e-3):
    model = Network()
    initialise(model)
    model.to(device)
    images, classes = (x.to(device) for x in digits())

    def batches(step):  # 997 and 1500 have no common divisor: each image once, then again
        chosen = [(step * UNITS + i) * 997 % TRAINED for i in range(UNITS)]
        return images[chosen], classes[chosen]

    return t.Trainer(model, optim.AdamW(model.parameters(), lr=lr), batches, loss)


def logits(trainer):
    """Those of the images that are not trained on."""
    device = next(trainer.model.parameters()).device
    return trainer.model(digits()[0][TRAINED:].to(device))


def summary(found):
    right = found.argmax(1).cpu() == digits()[1][TRAINED:]
    return f"{int(right.sum())} of {len(right)} test images right"


def main(arguments=None):
    return t.main(
        training, logits, script=__file__, steps=400, short=4, summary=summary, arguments=arguments
    )


if __name__ == "__main__":
    main()
