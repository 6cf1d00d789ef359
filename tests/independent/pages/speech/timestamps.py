"""sampling.32: the rules of times. speech.11 to speech.14: windows and segments by times."""

import math

from arithmetic.mutation import active
from pages.sampling import weight


def mask(logits, tokens):
    for token in tokens:
        if token < len(logits):
            logits[token] = -math.inf


def timed(logits, given, answer):
    """sampling.32"""
    t, n = given["timestamp_begin"], len(logits)
    times, words = range(t, n), range(t)
    if not active("no_times_may_come"):
        mask(logits, [t - 1])
    after_word = False
    if answer and answer[-1] >= t:
        after_word = len(answer) > 1 and answer[-2] < t
        if after_word:
            # Words below the least stop token: an answer may end here.
            mask(
                logits,
                range(t if active("a_time_may_not_end") else min([*given["stop_tokens"], t])),
            )
        else:
            mask(logits, times)
    if earlier := [token for token in answer if token >= t]:
        again = after_word or active("a_time_comes_again")
        mask(logits, range(t, earlier[-1] + (0 if again else 1)))
    if not answer:
        mask(logits, words)
        if "max_initial_timestamp_index" in given and not active("the_first_time_is_free"):
            mask(logits, range(t + given["max_initial_timestamp_index"] + 1, n))
    if sum_decides(logits, t):
        mask(logits, words)


def sum_decides(logits, t):
    """Whether the times together are likelier than any word, or no word is left."""
    left = [i for i, x in enumerate(logits) if x == x and x != -math.inf]
    if not left:
        return False
    greatest = max(logits[i] for i in left)
    weights = {i: weight(logits[i], greatest, 1.0) for i in left}
    of_words = [w for i, w in weights.items() if i < t]
    of_times = [w for i, w in weights.items() if i >= t]
    if active("the_best_time_decides"):
        of_times = of_times and [max(of_times)]
    return not of_words or sum(of_times) > max(of_words)


class Window:
    """speech.12: a window that begins with frame f, and the tokens of its answer."""

    def __init__(self, receipt, samples, frames):
        given, output = receipt["input"], receipt["output"]
        self.t, self.f = given["timestamp_begin"], given.get("audio_start", 0) // 160
        self.whole = max(1, samples // 160)  # F
        self.rest = min(frames, self.whole - self.f)  # R
        self.tokens = list(output["tokens"])
        if self.tokens[-1] in given["stop_tokens"]:
            del self.tokens[-1]
        self.pairs = [
            i for i in range(1, len(self.tokens)) if self.is_time(i - 1) and self.is_time(i)
        ]  # the places of the second times

    def is_time(self, i):
        return self.tokens[i] >= self.t

    def ends_behind_a_word(self):
        """Whether the last token is a time behind a word."""
        return len(self.tokens) > 1 and self.is_time(-1) and not self.is_time(-2)

    def next_frame(self):
        """Of the next window; None: there is none."""
        after = self.f + self.rest
        if self.pairs and (not self.ends_behind_a_word() or active("an_open_segment_is_cut")):
            after = self.f + 2 * (self.tokens[self.pairs[-1] - 1] - self.t)
        return after if after < self.whole else None

    def sample_of(self, token):
        """speech.11"""
        return 160 * self.f + 320 * (token - self.t)

    def segments(self):
        """speech.13: (first sample, end, tokens)"""
        if not self.pairs:
            times = [x for x in self.tokens if x >= self.t]
            end = 160 * (self.f + self.rest)
            if times and times[-1] != self.t:
                end = self.sample_of(times[-1])
            return [(160 * self.f, end, self.tokens)]
        cuts = [0, *self.pairs, len(self.tokens)]
        pieces = [self.tokens[a:b] for a, b in zip(cuts, cuts[1:])]
        if not self.ends_behind_a_word():
            pieces.pop()
        return [(self.sample_of(p[0]), self.sample_of(p[-1]), p) for p in pieces]

    def cues(self, tokenizer):
        """speech.14: milliseconds and text of the segments that people see"""
        for begin, end, tokens in self.segments():
            text = tokenizer.decode([x for x in tokens if x < self.t])
            if end > begin and (text := text.strip(" \t\r\n\f\v")):
                yield begin // 16, end // 16, text.replace("-->", "->")
