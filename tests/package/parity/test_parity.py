"""What Invar computes of a call is what torch computes, or the call is refused by name: a sample of
torch's own catalogue of operations, and of random calls (tools/parity.py runs them all)."""

import collections

import pytest
from conftest import BUILD

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import catalogue  # noqa: E402
import fuzzer  # noqa: E402
from compared import AGREES, FAULTS, REFUSED, judged, seeded  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SEED = 39  # of the sample
SHARE = 0.04  # of the pairs of operation and type


def all_judged(calls):
    """Counts of verdicts; fails with the first calls that are at fault."""
    counts, faults = collections.Counter(), []
    for call in calls:
        verdict, why = judged(call)
        counts[verdict] += 1
        if verdict in FAULTS:
            faults.append(f"{verdict}: {call}: {why}")
    assert not faults, "\n".join(faults[:20])
    return counts


def test_torchs_catalogue():
    calls = (
        call
        for op, dtype in catalogue.pairs(SEED, SHARE)
        for call in catalogue.calls(op, dtype, most=3, seed=SEED)
    )
    counts = all_judged(calls)
    assert counts[AGREES] > 2 * counts[REFUSED] > 0


def test_calls_that_torch_refuses():
    ops = [op for op in catalogue.operations() if seeded(SEED, op.name).random() < 0.15]
    assert all_judged(call for op in ops for call in catalogue.wrong_calls(op))


def test_random_calls():
    counts = all_judged(fuzzer.calls(seeded(SEED), 500))
    assert counts[AGREES] > 4 * counts[REFUSED]
