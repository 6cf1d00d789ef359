"""spec/sampling.md, Processors and Stop strings: what the fields of `input` do to a row of logits,
and where they end an answer."""

import math

from arithmetic.library import f32
from arithmetic.mutation import active
from pages.speech.timestamps import mask, timed

GREATEST = f32(3.4028234663852886e38)

# What the receipts of models that hear have beside the prompt and the sampling.
OF_SPEECH = (
    "decoder_tokens", "audio_start", "timestamp_begin", "max_initial_timestamp_index",
    "suppress_tokens", "begin_suppress_tokens",
)  # fmt: skip


def before(given):
    """The tokens that the answer continues: receipt.43 and receipt.46 with an encoder."""
    return given.get("decoder_tokens", given["tokens"])


def penalize(logits, history, penalty):
    """sampling.11"""
    repeated = history if active("penalty_per_occurrence") else sorted(set(history))
    for token in (t for t in repeated if t < len(logits)):
        x = logits[token]
        grows = x < 0 and not active("penalty_always_divides")
        logits[token] = f32(x * penalty if grows else x / penalty)


def penalize_answer(logits, answer, given):
    """sampling.23"""
    f, p = (f32(float(given.get(f"{name}_penalty", 0))) for name in ("frequency", "presence"))
    for token in sorted(set(answer)):
        if token < len(logits) and (f or p):
            count = 1 if active("frequency_counts_once") else answer.count(token)
            logits[token] = f32(f32(logits[token] - f32(f32(count) * f)) - p)


def mask_ngrams(logits, history, size):
    """sampling.12"""
    size += active("ngrams_are_longer")
    end = history[len(history) - size + 1 :] if size > 1 else []
    for j in range(len(history) - size + 1):
        if history[j : j + size - 1] == end:
            mask(logits, [history[j + size - 1]])


def mask_words(logits, history, words):
    """sampling.13"""
    for *start, last in words:
        begins = start == history[len(history) - len(start) :] and len(start) <= len(history)
        if begins or active("words_without_start"):
            mask(logits, [last])


def forced(logits, tokens):
    """sampling.15"""
    return [0.0 if t in tokens else -math.inf for t in range(len(logits))]


def finite(x):
    """sampling.16"""
    if x != x:
        return 0.0
    if active("infinities_stay"):
        return x
    return max(-GREATEST, min(GREATEST, x))


def suppressed(logits, given, position):
    """sampling.17"""
    mask(logits, given.get("suppress_tokens", []))
    late = len(before(given)) == 1 and "forced_bos_token_id" in given
    if position == (1 if late and not active("begin_is_always_first") else 0):
        mask(logits, given.get("begin_suppress_tokens", []))


def bad_words_ids(tokenizer, texts):
    """sampling.30, in the order of receipt.21"""
    found = []
    for text in (text.lstrip() for text in texts):
        alone, behind = (tokenizer.encode(t, special=False) for t in (text, " " + text))
        found.append(alone)
        if len(behind) == len(alone) and behind[0] != alone[0]:
            found.append(behind)
    return sorted(found)


def processed(logits, given, answer):
    """sampling.10: the row that a token is chosen from, behind the tokens `answer`. `given` is the
    section `input` of the receipt."""
    logits, position = list(logits), len(answer)
    history = ([] if active("history_is_the_answer") else before(given)) + answer
    if "repetition_penalty" in given:
        penalize(logits, history, f32(float(given["repetition_penalty"])))
    biases = [] if active("bias_is_ignored") else given.get("logit_bias", [])
    for token, bias in biases:  # sampling.22
        logits[token] = f32(logits[token] + f32(float(bias)))
    penalize_answer(logits, history if active("penalties_count_the_prompt") else answer, given)
    if "no_repeat_ngram_size" in given:
        mask_ngrams(logits, history, given["no_repeat_ngram_size"])
    mask_words(logits, history, given.get("bad_words_ids", []))
    if position < given.get("min_new_tokens", 0) - active("minimum_is_one_less"):  # sampling.14
        mask(logits, given["stop_tokens"])
    if active("suppression_first"):
        suppressed(logits, given, position)
    if "forced_bos_token_id" in given and len(before(given)) + position == 1:
        logits = forced(logits, [given["forced_bos_token_id"]])
    last = given["max_new_tokens"] - 1 - active("last_is_one_earlier")
    if "forced_eos_token_id" in given and position == last:
        logits = forced(logits, given["forced_eos_token_id"])
    if given.get("remove_invalid_values"):
        logits = [finite(x) for x in logits]
    if not active("suppression_first"):
        suppressed(logits, given, position)
    token = given.get("short_circuit_token")
    late = active("short_circuit_is_late")
    if position - late == given.get("short_circuit_length") and token not in answer:  # sampling.21
        logits = forced(logits, [token])
    if "structured_outputs" in given:  # sampling.29
        raise NotImplementedError("grammar.md is not read here")
    allowed = given.get("allowed_token_ids")
    if allowed and not active("all_tokens_are_allowed"):  # sampling.28
        mask(logits, [t for t in range(len(logits)) if t not in allowed])
    if "timestamp_begin" in given:
        timed(logits, given, answer)
    return logits


def ends(tokenizer, given, answer):
    """sampling.20: whether a stop string ends within what the last token of the answer gives."""
    if not given.get("stop_strings"):
        return False
    prompt = [] if active("stop_begins_in_answer") else before(given)
    text, earlier = (tokenizer.stream(prompt + a) for a in (answer, answer[:-1]))
    least = (
        len(tokenizer.stream(prompt))
        if given.get("stop_in_answer") and not active("stop_in_prompt")
        else 0
    )
    for stop in given["stop_strings"]:
        start = max(least, len(earlier) - len(stop.encode()) + 1)
        if text.find(stop.encode(), start) >= 0:
            return True
    return False
