#!/usr/bin/env python3
"""mutations.py [NAME...]: breaks one clause at a time; shows what notices.

A mutation is noticed if the example of a page, a vector or a receipt that Invar made is no longer
what the independent implementation computes. Exit 1 where one is not noticed.
"""

import itertools
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import make_checkpoint  # noqa: E402
import model_examples  # noqa: E402
from arithmetic.library import LIBRARY  # noqa: E402
from arithmetic.mutation import mutated  # noqa: E402
from files import mutations_of_files  # noqa: E402
from pages.model import Model  # noqa: E402

import examples  # noqa: E402

HERE = Path(__file__).resolve().parent
RECEIPTS = {
    "romeo": HERE.parent / "golden/romeo.receipt.json",
    "edges": HERE / "receipts/edges.json",
    "tied": HERE / "receipts/tied.json",
    "exact16": HERE / "receipts/exact16.json",  # of the model that ships
    # Settings of generation_config.json and --stop; the model is the one that ships.
    "greedy": HERE.parent / "golden/receipts/romeo.settings-greedy.json",
    "drawn": HERE.parent / "golden/receipts/romeo.settings-drawn.json",
    "stop": HERE.parent / "golden/receipts/romeo.settings-stop.json",
    "openai": HERE.parent / "golden/receipts/romeo.settings-openai.json",
    "further": HERE / "receipts/further.json",  # sampling.21, sampling.28, sampling.30, sampling.31
    **mutations_of_files.RECEIPTS,
}

# name: (clause, what is other, who notices)
TABLE = {
    # formats.md
    "store_keeps_subnormals": ("formats.5", "subnormal results stay", "edges"),
    "store_loses_sign_of_zero": ("formats.5", "subnormal results become +0", "edges"),
    "store_keeps_nan": ("formats.5", "a NaN keeps sign and payload", "edges"),
    "widening_flushes": ("formats.2", "subnormal bf16 becomes zero", "edges"),
    # functions.md
    "exp_one_ulp": ("functions.2", "exp is one unit less", "romeo"),
    "exp_by_polynomial": ("functions.2", "a series of six terms in binary64", "romeo"),
    "exp_flushes": ("functions.1", "exp has no subnormal results", "functions"),
    "cos_one_ulp": ("functions.3", "cos is one unit less", "romeo"),
    "pow_truncates": ("functions.4", "pow rounds towards zero", "romeo"),
    # reduction.md
    "row_segments_of_2048": ("reduction.1", "segments of 2048", "edges"),
    "row_one_segment": ("reduction.1", "one segment for the row", "edges"),
    "row_lanes_128": ("reduction.2", "128 lanes", "romeo"),
    "row_lanes_descend": ("reduction.2", "lanes add in descending order", "edges"),
    "row_squares_round": ("reduction.3", "the square rounds, then the sum", "edges"),
    "row_joins_linearly": ("reduction.4", "lanes join one after the other", "romeo"),
    "row_joins_neighbours": ("reduction.4", "neighbours join, stride 1 first", "romeo"),
    "block_sum_linear": ("reduction.6", "the sum of a block without tree", "romeo"),
    # contraction.md
    "exact16_one_scale": ("exact16.1", "e is always p - 14", "exact16"),
    "exact16_truncates": ("exact16.2", "integers are cut", "exact16"),
    "exact16_three_products": ("exact16.3", "low bytes are not multiplied", "exact16"),
    "exact16_exp_degree_3": ("attention_exact16.3", "exp by a cubic", "exact16"),
    "exact16_weights_of_16_bits": ("attention_exact16.5", "weights are cut", "exact16"),
    "exact16_largest_scale": ("attention_exact16.5", "E leaves the weights out", "exact16"),
    "chain_blocks_of_128": ("contraction.2", "blocks of 128", "romeo"),
    "chain_multiplies_and_adds": ("contraction.2", "the product rounds, then the sum", "romeo"),
    "chain_descends": ("contraction.2", "k descends", "romeo"),
    "chain_in_binary64": ("contraction.2", "chains in binary64", "romeo"),
    "chain_squashes": ("contraction.2", "chains are stored", "attention"),
    "product_keeps_subnormals": ("contraction.6", "products are not stored", "edges"),
    "segments_4": ("contraction.3", "four segments", "edges"),
    "segments_interleave": ("contraction.3", "block b to segment b mod 8", "edges"),
    "segment_starts_with_chain": ("contraction.3", "no +0 before the first chain", "contraction"),
    "segments_add_linearly": ("contraction.4", "segments add one after the other", "edges"),
    "segments_tree_by_stride": ("contraction.4", "s0 + s4 first", "edges"),
    # operations.md
    "norm_epsilon_outside_root": ("rmsnorm", "epsilon is added to the root", "romeo"),
    "norm_root_rounds_once": ("rmsnorm", "1 / sqrt rounds once", "romeo"),
    "norm_divides_by_root": ("rmsnorm", "x / root", "romeo"),
    "norm_weight_first": ("rmsnorm", "x * (r * w)", "romeo"),
    "norm_multiplies_by_inverse": ("rmsnorm", "total * (1 / n)", "edges"),
    "silu_divides": ("silu", "x / (1 + exp(-x))", "romeo"),
    "silu_keeps_subnormal_sigmoid": ("silu", "the sigmoid is not stored", "edges"),
    "rope_fuses": ("rope", "one product is fused", "romeo"),
    "rope_interleaves": ("rope", "pairs are neighbours", "romeo"),
    "rope_turns_back": ("rope", "the angle is negative", "romeo"),
    # attention.md
    "heads_interleave": ("attention.1", "head h reads head h mod Hkv", "romeo"),
    "sees_no_self": ("attention.3", "a query does not see its own key", "romeo"),
    "score_is_stored": ("attention.3", "the contraction is stored", "attention"),
    "scale_before_contraction": ("attention.3", "the query is scaled", "romeo"),
    "key_blocks_of_64": ("attention.4", "blocks of 64 keys", "edges"),
    "block_maximum_runs": ("attention.5", "the maximum of all keys so far", "edges"),
    "weights_keep_subnormals": ("attention.6", "weights are not stored", "edges"),
    "block_value_rounds_product": ("attention.8", "products round", "romeo"),
    "block_skips_zero_weights": ("attention.8", "weights of +0 are skipped", "attention"),
    "fold_rounds_product": ("attention.9", "products round", "edges"),
    "fold_keeps_subnormal_factor": ("attention.9", "f is not stored", "attention"),
    "fold_rescales_old_only": ("attention.9", "the newer maximum always wins", "edges"),
    "result_by_reciprocal": ("attention.10", "O * (1 / l)", "romeo"),
    # ops/linear_attention.md and ops/causal_conv.md
    "chunks_of_32": ("linear_attention.2", "chunks of 32 positions", "linear_attention"),
    "decays_add_in_binary32": ("linear_attention.3", "G in binary32", "linear_attention"),
    "decay_in_binary64": ("linear_attention.3", "exp in binary64", "linear_attention"),
    "decay_keeps_subnormals": ("linear_attention.3", "decays are not stored", "linear_attention"),
    "past_is_stored": ("linear_attention.4", "h is stored", "linear_attention"),
    "chunk_multiplies_and_adds": ("linear_attention.5", "products round", "linear_attention"),
    "scale_is_left_out": ("linear_attention.6", "no scale", "linear_attention"),
    "value_heads_interleave": ("linear_attention.1", "head h mod Hk", "linear_attention"),
    "taps_turn_back": ("causal_conv.2", "the last tap first", "convolution"),
    # llama.md and checkpoint.md
    "scale_rounds_twice": ("llama.8", "the root is rounded to binary32", "edges"),
    "positions_from_one": ("llama.6", "the first token is at position 1", "romeo"),
    "frequency_is_negative_power": ("onnx.6", "pow(theta, -e) for 1 / pow", "romeo"),
    "yarn_without_truncation": ("onnx.6", "lo and hi are not whole", "edges"),
    "yarn_without_attention_factor": ("onnx.6", "cos and sin are not multiplied", "edges"),
    "yarn_divides_frequency": ("onnx.6", "f / factor for 1 / (factor * p)", "edges"),
    "llama3_without_ramp": ("onnx.6", "frequencies between are not mixed", "tied"),
    # sampling.md
    "philox_7_rounds": ("sampling.2", "seven rounds", "romeo"),
    "philox_swaps_keys": ("sampling.2", "k0 and k1 change places", "romeo"),
    "counter_is_stream_first": ("sampling.3", "stream before position", "romeo"),
    "random_words_swap": ("sampling.3", "u = c1 + 2^32 c0", "romeo"),
    "temperature_divides_first": ("sampling.6", "logits are divided, then subtracted", "edges"),
    "weights_in_binary64": ("sampling.6", "exp in binary64", "random_draws"),
    "ties_to_highest_index": ("sampling.7", "equal logits: the highest index first", "edges"),
    "top_k_off": ("sampling.7", "top_k is ignored", "romeo"),
    "top_k_one_more": ("sampling.7", "top_k + 1 remain", "random_draws"),
    "top_p_before_top_k": ("sampling.8", "W is the sum of all weights", "edges"),
    "top_p_leaves_last_out": ("sampling.8", "the prefix stays below top_p", "random_draws"),
    "remainder_for_product": ("sampling.9", "r = u mod W", "romeo"),
    "walks_by_weight": ("sampling.9", "the walk is by weight, not by index", "romeo"),
    "suppression_first": ("sampling.10", "suppression acts before forced tokens", "greedy"),
    "penalty_per_occurrence": (
        "sampling.11",
        "a token that comes twice is changed twice",
        "greedy",
    ),
    "penalty_always_divides": ("sampling.11", "negative logits are divided, too", "stop"),
    "history_is_the_answer": ("sampling.11", "the prompt does not count", "greedy"),
    "ngrams_are_longer": ("sampling.12", "sequences of one token more", "greedy"),
    "words_without_start": ("sampling.13", "the last token alone is masked", "greedy"),
    "minimum_is_one_less": ("sampling.14", "stop tokens come one token earlier", "stop"),
    "last_is_one_earlier": ("sampling.15", "the last but one token is forced", "greedy"),
    "infinities_stay": ("sampling.16", "-Inf stays", "drawn"),
    "begin_is_always_first": ("sampling.17", "at i = 0 behind a forced token, too", "drawn"),
    "min_p_of_all": ("sampling.18", "the share of all weights", "drawn"),
    "epsilon_before_min_p": ("sampling.19", "W is the sum before min_p", "drawn"),
    "epsilon_of_the_best": ("sampling.19", "the share of the best weight", "drawn"),
    "stop_begins_in_answer": ("sampling.20", "the prompt does not count", "stop"),
    "stop_in_prompt": ("sampling.20", "stop_in_answer is ignored", "openai"),
    "bias_is_ignored": ("sampling.22", "nothing is added", "openai"),
    "frequency_counts_once": ("sampling.23", "c is at most 1", "openai"),
    "penalties_count_the_prompt": ("sampling.23", "c counts the prompt, too", "openai"),
    "short_circuit_is_late": ("sampling.21", "one token later", "further"),
    "all_tokens_are_allowed": ("sampling.28", "no token is masked", "further"),
    "ends_are_not_ignored": ("sampling.31", "ignore_eos is ignored", "further"),
    "further_stop_tokens_go_on": ("sampling.31", "the model's own ends alone", "further"),
    "one_stream": ("sampling.24", "every answer is drawn from stream 0", "openai"),
    # tokens.md
    "tokens_without_bos": ("tokens.7", "no special token before the text", "romeo"),
    "added_tokens_are_text": ("tokens.3", "added tokens are ordinary text", "tokens"),
    "ill_formed_bytes_vanish": ("tokens.8", "no U+FFFD for bytes that are no UTF-8", "edges"),
    "words_are_not_split": ("tokens.4", "merges cross words", "edges"),
    "merges_leftmost_first": ("tokens.6", "the leftmost merge, whatever its rank", "edges"),
    "text_with_special_tokens": ("tokens.8", "special tokens are in the text", "edges"),
    # plan.md and receipt.md
    "weight_leaf_without_line_feed": ("plan.8", "a leaf without line feed", "romeo"),
    "merkle_leaves_unmarked": ("receipt.6", "leaves without the byte 00", "romeo"),
    "merkle_nodes_marked_as_leaves": ("receipt.6", "nodes with the byte 00", "romeo"),
    "merkle_repeats_odd_node": ("receipt.6", "an odd node is joined with itself", "romeo"),
    "floats_of_nine_digits": ("receipt.3", "floats have nine digits", "romeo"),
    "execution_leaf_without_prefix": ("receipt.8", "leaves of execution by key alone", "romeo"),
    "hash_without_schema": ("receipt.5", "schema is no leaf", "romeo"),
    "leaf_with_colon": ("receipt.5", "a leaf has : for =", "romeo"),
    "escapes_nothing": ("receipt.4", "strings without escapes", "romeo"),
    "leaves_by_name": ("receipt.6", "leaves in the order of names", "romeo"),
    "commitment_big_endian": ("receipt.7", "commitments big-endian", "romeo"),
    **mutations_of_files.TABLE,
}


class Witnesses:
    def __init__(self, folder):
        self.folders = {}  # else the model that ships
        for name in ("edges", "tied"):  # spec/made-models.md
            self.folders[name] = Path(folder) / name
            make_checkpoint.make(self.folders[name], name)
        self.files = mutations_of_files.MadeModels(folder)

    def differences(self, name):
        if name in RECEIPTS:
            receipt = json.loads(RECEIPTS[name].read_bytes())
            if name in mutations_of_files.RECEIPTS:
                return self.files.model(name).findings(receipt)
            folder = self.folders.get(name, model_examples.SHIPPED)
            return Model(folder, receipt["program"]["profile"]).findings(receipt)
        modules = (examples, model_examples, mutations_of_files)
        return next(getattr(m, name)() for m in modules if hasattr(m, name))

    def notices(self, name):
        """The first difference, or why there is no answer, or None."""
        try:
            return next(iter(self.differences(name)), None)
        except ValueError as e:
            return str(e)


def arithmetic_names():
    """The mutations that law.h lists."""
    names = (LIBRARY.law_mutation_name(i) for i in itertools.count(1))
    return {n.decode() for n in itertools.takewhile(bool, names)}


def main():
    wanted = sys.argv[1:] or TABLE
    unnoticed = sorted(f"{n}: not in the table" for n in arithmetic_names() - TABLE.keys())
    with tempfile.TemporaryDirectory() as folder:
        witnesses = Witnesses(folder)
        for name in wanted:
            clause, what, who = TABLE[name]
            began = time.time()
            with mutated(name):
                found = witnesses.notices(who)
            shown, seconds = repr(found)[:70], time.time() - began
            print(f"{clause:14} {what:40} {who}: {shown} ({seconds:.1f} s)")
            if not found:
                unnoticed.append(f"{name} ({clause}): {who} does not notice")
    print(f"{len(wanted) - len(unnoticed)} of {len(wanted)} mutations are noticed")
    for line in unnoticed:
        print(line)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
