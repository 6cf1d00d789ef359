"""Trains a small Llama on a text: the same weights, logits and losses on every machine.

python examples/train_llama.py [--steps 200] [--device cuda] [--micro-batch 2] [--workers 4]"""

from invar import optim
from invar import training as t
from llama import Config, Llama, initialise, loss, sequences, text_tokens

LENGTH, UNITS, WARM_UP = 32, 8, 10


def training(device="cpu", lr=3e-3):
    model = Llama(Config())
    initialise(model)
    model.to(device)
    return t.Trainer(
        model,
        optim.AdamW(model.parameters(), lr=lr, weight_decay=0.1),
        sequences(text_tokens(), LENGTH, UNITS, device),
        loss,
        schedule=lambda step: {"lr": lr * min(1.0, (step + 1) / WARM_UP)},
    )


def logits(trainer):
    """Those of the first sequences of the text."""
    (tokens,) = trainer.batches(0)
    return trainer.model(tokens[:, :-1])


def main(arguments=None):
    return t.main(training, logits, script=__file__, steps=200, short=3, arguments=arguments)


if __name__ == "__main__":
    main()
