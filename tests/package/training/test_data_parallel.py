"""Workers of a torch.distributed group: their number reaches no bit."""

import json
import sys
from pathlib import Path

import pytest
from conftest import BUILD

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python"), str(Path(__file__).parent)]
import invar  # noqa: E402
import tiny_training  # noqa: E402
from invar import training as t  # noqa: E402
from invar.training import parallel  # noqa: E402


def run(rank, path, steps, micro_batch):
    invar.set_threads(1)
    trainer = tiny_training.training(units=3)  # of four workers one has none
    trainer.micro_batch = micro_batch
    recorder = t.Recorder(trainer, path, script=tiny_training.__file__, every=4, resume=True)
    receipt = recorder.run(steps)
    own = t.state_digest(trainer.state())  # every worker has the state
    assert receipt is None if rank else receipt.state(steps) == own
    return receipt.data if receipt else None


def test_any_number_of_workers(tmp_path):
    """Two workers begin, four go on, with other micro-batches."""
    path = tmp_path / "run.json"
    wanted = run(0, None, 6, None)
    found = t.launch(run, 2, path, 4, None)
    assert found["steps"] == wanted["steps"][:4]
    assert json.loads(path.read_text()) == found
    found = t.launch(run, 4, path, 6, 1)
    assert found["steps"] == wanted["steps"] and found["receipt_hash"] == wanted["receipt_hash"]


def test_shares_of_a_batch():
    for units in range(9):
        for workers in range(1, 6):
            found = [parallel.part(units, rank, workers) for rank in range(workers)]
            assert [a for a, _ in found] == [0, *(b for _, b in found[:-1])] and found[-1][
                1
            ] == units
            assert max(b - a for a, b in found) - min(b - a for a, b in found) <= 1


def fail(rank):
    raise invar.BadInput(f"of worker {rank}")


def test_an_error_of_a_worker_ends_all():
    with pytest.raises(Exception, match="of worker"):
        t.launch(fail, 2)
    with pytest.raises(invar.BadInput, match="^workers: 0 is no number of processes"):
        t.launch(fail, 0)
    with pytest.raises(invar.BadInput, match="^of worker 0$"):
        t.launch(fail, 1)
