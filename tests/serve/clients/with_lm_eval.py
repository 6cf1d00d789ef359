"""lm-eval's local-completions: its sums of log-probabilities are those of single requests, bit for
bit, and so are its greedy answers."""

import json
import urllib.request

from common import FACTS, URL
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

NAME = "shakespeare-4m"
model = LocalCompletionsAPI(
    model=NAME,
    base_url=URL + "/v1/completions",
    tokenizer_backend="huggingface",
    tokenizer=FACTS["folder"],
    add_bos_token=True,
    num_concurrent=1,
    max_retries=1,
    batch_size=4,
)


def ask(path, body):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(
        URL + path, json.dumps(body | {"model": NAME}).encode(), headers
    )
    return json.load(urllib.request.urlopen(request))


def tokens(text):
    return ask("/tokenize", {"prompt": text})["tokens"]


pairs = [
    ("ROMEO:", " I love thee"),
    ("JULIET:\n", "What man art thou"),
    ("First Citizen:\n", "Speak, speak."),
    ("KING", " RICHARD"),
    ("ROMEO:", " I'll tell thee"),
]
requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
for (context, continuation), (total, greedy) in zip(
    pairs, model.loglikelihood(requests), strict=True
):
    # It moves white space to the continuation, and cuts the whole text's tokens by number.
    first = tokens(context.rstrip())
    begin = len(first)
    ids = first + tokens(context + continuation)[begin:]
    asked = {"prompt": ids, "max_tokens": 0, "echo": True, "logprobs": 1}
    said = ask("/v1/completions", asked)["choices"][0]["logprobs"]
    mine = said["token_logprobs"][begin:]
    assert total == sum(mine), (context, total, sum(mine))
    best = [max(top.values()) for top in said["top_logprobs"][begin:]]
    assert greedy == (mine == best)
assert greedy  # of the last pair, which the model says itself
until = {"until": ["\n"], "max_gen_toks": 12, "temperature": 0}
(text,) = model.generate_until([Instance("generate_until", {}, ("ROMEO:", until), 0)])
asked = {"prompt": "ROMEO:", "max_tokens": 12, "temperature": 0, "stop": "\n"}
assert text == ask("/v1/completions", asked)["choices"][0]["text"]
