"""Each clause that mutations.py breaks is noticed by an example, a vector or a receipt."""

import mutations
import pytest
from arithmetic.mutation import mutated


@pytest.fixture(scope="module")
def witnesses(tmp_path_factory):
    return mutations.Witnesses(tmp_path_factory.mktemp("edges"))


def test_the_table_has_every_mutation_of_the_arithmetic():
    assert mutations.arithmetic_names() <= mutations.TABLE.keys()


@pytest.mark.parametrize("name", mutations.TABLE)
def test_mutation_is_noticed(witnesses, name):
    with mutated(name):
        assert witnesses.notices(mutations.TABLE[name][2])


def test_witnesses_notice_nothing_without_a_mutation(witnesses):
    for name in sorted({who for _, _, who in mutations.TABLE.values()}):
        assert witnesses.notices(name) is None
