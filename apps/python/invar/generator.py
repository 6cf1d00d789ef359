"""The generator that NumPy's arrays draw from: a counter (spec: spec/ops/random.md)."""

import operator
import threading

from invar.errors import ArgumentTypeError, OperandError

_WORD = 2**64
_GRAIN = 4  # numbers of one counter (random.2): each draw begins with a counter


class Generator:
    """A sequence of random numbers that is the same on every machine and device (spec: random.2).

    Number e of a seed is fixed; the generator only counts how many are drawn. So its state is two
    integers, to be saved with a checkpoint and restored. It may be used from several threads."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> "Generator":
        """Begins the sequence of `seed` (any integer, modulo 2^64); returns the generator."""
        seed = integer(seed, "seed")
        with self._lock:
            self._seed, self._offset = seed, 0
        return self

    def initial_seed(self) -> int:
        return self._seed

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def offset(self) -> int:
        """The number that the next draw begins with."""
        return self._offset

    def draw(self, count: int) -> tuple[int, int]:
        """(seed, offset) of the next `count` numbers; the draw after them begins behind them, at a
        multiple of 4."""
        with self._lock:
            first = self._offset
            self._offset = (first + -(-count // _GRAIN) * _GRAIN) % _WORD
            return self._seed, first

    def get_state(self) -> tuple[int, int]:
        """(seed, offset)."""
        return self._seed, self._offset

    def set_state(self, state: tuple[int, int]) -> "Generator":
        """Goes on where a generator of this state would; returns the generator."""
        try:
            seed, offset = state
        except (TypeError, ValueError):
            raise OperandError(
                f"Generator: argument 'state': expected (seed, offset), got {state!r}"
            ) from None
        seed, offset = integer(seed, "seed"), integer(offset, "offset")
        with self._lock:
            self._seed, self._offset = seed, offset
        return self

    def state_dict(self) -> dict[str, int]:
        return {"seed": self._seed, "offset": self._offset}

    def load_state_dict(self, state: dict[str, int]) -> None:
        if not isinstance(state, dict) or set(state) != {"seed", "offset"}:
            raise OperandError(
                f"Generator: argument 'state': expected seed and offset, got {state!r}"
            )
        self.set_state((state["seed"], state["offset"]))

    def clone(self) -> "Generator":
        """One of the same state, which counts on its own."""
        return Generator().set_state(self.get_state())

    def __repr__(self) -> str:
        return f"invar.Generator(seed={self._seed}, offset={self._offset})"

    def __getstate__(self) -> dict[str, int]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, int]) -> None:
        self._lock = threading.Lock()
        self.load_state_dict(state)


def integer(value: int, argument: str) -> int:
    try:
        return operator.index(value) % _WORD
    except TypeError:
        raise ArgumentTypeError(
            f"Generator: argument '{argument}': expected an integer, got {type(value).__name__}"
        ) from None


default_generator = Generator(0)
"""What functions draw from for NumPy's arrays, given neither a seed nor a generator; for tensors of
torch they follow torch's generator. Its seed is 0 until manual_seed() sets another."""
