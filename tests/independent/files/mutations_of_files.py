"""Mutations of what is read of files: GGUF, adapters, recordings. mutations.py has the others."""

import json
from pathlib import Path

import model_examples
from files import made_adapter, made_gguf, made_whisper
from pages.model import Model
from pages.speech.timestamps import Window

HERE = Path(__file__).resolve().parents[1]
NAMES = ("gguf_bytes", "gguf_pieces", "adapter", "hears", "hears_on")
# What `invar run` made of the made files, with the options below.
RECEIPTS = {name: HERE / f"receipts/{name}.json" for name in NAMES}
SAMPLED = ["--temperature", 1.3, "--top-k", 100, "--top-p", 0.95, "--seed", 95]
GGUF_RUN = ["--prompt-text", "The other seas<added> in é the end", "--max-new-tokens", 12, *SAMPLED]
ADAPTER_RUN = ["--prompt-text", "ROMEO:", "--max-new-tokens", 8, *SAMPLED]
SPEECH_RUN = [
    "--timestamps", "--language", "en", "--max-new-tokens", 20, "--temperature", 1.3, "--top-k", 0,
    "--seed", 0,
]  # fmt: skip

# name: (clause, what is other, who notices)
TABLE = {
    # weights.md and gguf.md
    "nibbles_in_turn": ("weights.3", "even numbers in the low halves", "gguf_bytes"),
    "q8_is_unsigned": ("weights.3", "bytes without sign", "gguf_bytes"),
    "zeros_lose_their_sign": ("weights.5", "8 is +0", "gguf_bytes"),
    "k_scales_without_high_bits": ("weights.7", "scales of four bits", "gguf_bytes"),
    "k_minima_are_added": ("weights.7", "plus for minus", "gguf_bytes"),
    "q6_halves_change_places": ("weights.9", "high halves first", "gguf_bytes"),
    "rows_stay_in_pairs": ("weights.14", "rows of the file", "gguf_bytes"),
    "end_tokens_by_key_alone": ("gguf.6", "no token ends an answer by its name", "gguf_bytes"),
    "whole_words_are_merged": ("gguf.8", "no token is a whole word", "gguf_bytes"),
    "unused_tokens_exist": ("gguf.7", "tokens of type 5 are tokens", "gguf_bytes"),
    "own_pieces_are_text": ("tokens.16", "user-defined pieces join", "gguf_pieces"),
    "pieces_join_from_the_left": ("tokens.16", "whatever the scores", "gguf_pieces"),
    "unused_pieces_stay": ("tokens.16", "unused pieces are not taken apart", "gguf_pieces"),
    "the_first_space_stays": ("tokens.16", "a text begins with a space", "gguf_pieces"),
    "rank_without_root": ("weights.24", "alpha / r for rslora", "adapter"),
    "patterns_are_ignored": ("weights.25", "all modules have r and alpha", "adapter"),
    "scale_divides_in_binary32": ("weights.24", "alpha and the root rounded first", "adapter"),
    "scale_before_the_second_product": ("weights.23", "(x A) s, then B", "adapter"),
    "adapter_files_change_places": ("receipt.44", "the tensors before the config", "adapter"),
    # speech.md and seq2seq.md
    "samples_over_32767": ("speech.1", "samples over 2^15 - 1", "hears"),
    "window_ends_are_silent": ("speech.2", "zeros outside of the window", "hears"),
    "frames_without_window": ("speech.4", "no Hann window", "hears"),
    "bands_are_linear": ("speech.3", "corners in hertz", "hears"),
    "bands_are_not_scaled": ("speech.5", "h = 1", "hears"),
    "quiet_bands_stay": ("speech.6", "no least feature", "hears"),
    "gelu_by_erf": ("elementwise.12", "no correction for x < 0", "hears"),
    "moments_in_one_pass": ("reduction.9", "mean of squares minus square of mean", "hears"),
    "the_encoder_is_causal": ("seq2seq.6", "no place sees a later one", "hears"),
    "the_encoder_is_deaf": ("seq2seq.6", "all places see the first alone", "hears"),
    "no_times_may_come": ("sampling.32", "t - 1 is not masked", "hears_on"),
    "a_time_may_not_end": ("sampling.32", "words up to t are masked, ends too", "hears"),
    "a_time_comes_again": ("sampling.32", "a time may come again behind words", "hears"),
    "the_first_time_is_free": ("sampling.32", "no greatest first time", "hears"),
    "the_best_time_decides": ("sampling.32", "the greatest weight of a time", "hears"),
    "an_open_segment_is_cut": ("speech.12", "the last pair always decides", "windows"),
}


class MadeModels:
    """The models of these receipts, made in a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for kind in made_gguf.TOKENIZERS:
            made_gguf.make(self.folder / f"{kind}.gguf", kind)
        made_adapter.make(self.folder / "made")
        made_whisper.make(self.folder / "hears")

    def model(self, name):
        if name.startswith("gguf"):
            return Model(self.folder / f"{name.removeprefix('gguf_')}.gguf")
        if name == "adapter":
            return Model(model_examples.SHIPPED, adapter=self.folder / "made")
        return Model(self.folder / "hears", recording=self.folder / "hears/talk.wav")


def windows():
    """speech.12: the second window begins where the first one's answer says."""
    first, second = (json.loads(RECEIPTS[name].read_bytes()) for name in ("hears", "hears_on"))
    found = Window(first, made_whisper.SAMPLES, 2 * made_whisper.POSITIONS).next_frame()
    if 160 * found != second["input"]["audio_start"]:
        yield f"the second window begins with frame {found}"
