"""The text that the model learns, as tokens: stories, talks and calls of tools, made from a seed.

Document i of a seed is the same everywhere and needs no other document, so that any batch of any
step can be made alone."""

import json
import re
from functools import lru_cache
from pathlib import Path

from stories import adventures, plots, quiet, wonders
from stories.scene import Scene
from stories.summaries import DEEDS, SUMMARIES
from talks import memory, people, tasks, tools

from grammar import Dice, say

END, BEGIN_TURN, END_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (
    END,
    BEGIN_TURN,
    END_TURN,
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<tools>",
    "</tools>",
)
PLOTS = (
    plots.lost,
    plots.rescue,
    plots.sharing,
    plots.fear,
    plots.cooking,
    plots.storm,
    plots.honest,
    plots.learning,
    adventures.treasure,
    adventures.wish,
    adventures.different,
    adventures.newcomer,
    adventures.stuck,
    adventures.seed,
    adventures.race,
    quiet.night,
    quiet.kindness,
    quiet.surprise,
    quiet.monster,
    quiet.chores,
    wonders.mystery,
    wonders.invention,
    wonders.snowman,
    wonders.concert,
    wonders.bridge,
    wonders.moon,
    wonders.baby,
    wonders.star,
)
SYSTEMS = (
    "You are a helpful assistant.",
    "You are Tale, a small model that tells stories.",
    "Be kind and answer in short sentences.",
    "You are a friendly assistant for children.",
    "Answer briefly.",
    "You are a helpful assistant.",
)


def weighted(table):
    return [skill for skill, weight in table for _ in range(weight)]


TALKS, TASKS = weighted(memory.SKILLS), weighted(tasks.SKILLS)


def small(dice):
    return dice.pick(TALKS if dice.chance(0.5) else TASKS)(dice)


def scene(dice):
    made, plot = Scene(dice), dice.pick(PLOTS)
    plot(made)
    made.plot = plot.__name__
    return made


def about_story(s):
    """A question about the whole story."""
    summary, morals = SUMMARIES[s.plot]
    kind = s.dice.below(3)
    if kind == 0:
        return s.dice.pick(
            ["Give the story a title.", "What is a good title for the story?", "What is the title?"]
        ), s.title()
    if kind == 1:
        return s.dice.pick(
            [
                "Tell the story in one sentence.",
                "What happens in the story?",
                "Sum up the story.",
                "What is the story about?",
                "Can you make it shorter?",
            ]
        ), s.text(summary)
    return s.dice.pick(
        [
            "What can we learn from the story?",
            "What is the moral of the story?",
            "What does the story teach us?",
            "What do we learn?",
        ]
    ), s.text(s.dice.pick(morals.split("|")))


def request(s):
    """A wish that the story of a scene fulfils."""
    d, tags = s.dice, s.tags
    begin = say(
        d,
        "[Tell me|Tell me|Please tell me|Can you tell me|Write|Please write|I want to hear|I "
        "would like|Make up|Could you tell me|Let me hear|]",
    )
    what = d.pick(["a story", "a story", "a short story", "a little story", "a tale"])
    s.words.update(kind=tags["kind"], name=tags["name"], theme=s.text(tags["theme"]))
    s.words.update(
        thing=tags.get("thing", ""), friend=tags.get("friend", ""), place=tags.get("place", "")
    )
    s.words["deed"] = s.text(d.pick(DEEDS[s.plot].split("|")))
    one = " about {a kind} named {name}"
    about = ["", " about {a kind}", one, " about {theme}", " about {theme}", " about {theme}"]
    about += [
        " about {a kind} {deed}",
        " about {a kind} {deed}",
        one + " {deed}",
        one + " and {theme}",
    ]
    about += [" about {name}", " about {name} {deed}", " about {a kind} and {theme}"]
    if "thing" in tags:
        about += [" about {a thing}", " about {a kind} and {a thing}", " with {a thing}"]
    if "friend" in tags:
        about += [" about {name} and {friend}", " about two friends named {name} and {friend}"]
    if "place" in tags:
        about += [" that happens {place}", " about {a kind} {place}"]
    ask = " ".join(filter(None, (begin, what, s.text(d.pick(about)))))
    ask = ask[0].upper() + ask[1:]
    if begin.startswith("C"):
        return ask + "?"
    return ask + d.pick([".", ".", "", "!", ", please."] if "lease" not in begin else [".", ""])


def story_talk(dice):
    s = scene(dice)
    pairs = [(request(s), s.story())]
    facts = list(s.facts)
    for _ in range(dice.below(5)):
        if facts and dice.chance(0.7):
            pairs.append(facts.pop(dice.below(len(facts))))
        elif dice.chance(0.6):
            pairs.append(about_story(s))
        else:
            pairs += dice.pick([people.thanks, people.thanks, small])(dice)
    if dice.chance(0.25):
        pairs = people.greeting(dice) + pairs
    if dice.chance(0.3):
        other = scene(dice)
        again = dice.pick(
            [
                "Another story, please.",
                "Tell me another story.",
                "One more story!",
                "Another one.",
                request(other),
                request(other),
            ]
        )
        pairs.append((again, other.story()))
    return pairs


def reading_talk(dice):
    """The story is in the question."""
    s = scene(dice)
    facts = dice.picks(s.facts, min(len(s.facts), dice.between(1, 4)))
    first = facts[0][0]
    text = s.story()
    ask = (
        text + "\n\n" + first
        if dice.chance(0.6)
        else dice.pick(["Read this story: ", "Here is a story: ", "Listen: "])
        + text
        + "\n\n"
        + first
    )
    pairs = [(ask, facts[0][1]), *facts[1:]]
    return [*pairs, about_story(s)] if dice.chance(0.4) else pairs


def going_on(dice):
    """The question begins a story, the answer goes on."""
    s = scene(dice)
    cut = 1 if dice.chance(0.6) else 2
    begun, rest = s.paragraphs[:cut], s.paragraphs[cut:]
    ask = dice.pick(
        [
            "Go on with this story: ",
            "Continue this story: ",
            "How does this story go on? ",
            "What happens next? ",
            "Finish this story: ",
        ]
    )
    return [(ask + "\n\n".join(begun), "\n\n".join(rest))]


def small_talk(dice):
    pairs = people.greeting(dice) if dice.chance(0.2) else []
    for _ in range(dice.between(1, 8)):
        pairs += small(dice)
    if dice.chance(0.15):
        pairs += people.goodbye(dice)
    return pairs


SHORT = (("What is ", "What's "), ("I am ", "I'm "), ("do not ", "don't "), ("Who is ", "Who's "))


def typed(dice, text):
    """As people type: shorter, without capitals, without the last sign."""
    if "\n" in text:
        return text
    if dice.chance(0.15):
        for long, short in SHORT:
            text = text.replace(long, short)
    if dice.chance(0.05) and text.startswith(("Tell", "Name", "Count", "Write", "Say", "Spell")):
        text = "Please " + text[0].lower() + text[1:]
    if dice.chance(0.15):
        text = text.lower()
    if dice.chance(0.2) and text[-1:] in ".?!":
        text = text[:-1]
    return text


def rendered(messages, tools=(), answer=False):
    """What chat_template.jinja makes of messages. answer: an answer is to follow."""
    out, system = [], messages[0]["content"] if messages[0]["role"] == "system" else ""
    if tools:
        listed = "".join("\n" + json.dumps(tool) for tool in tools)
        system += ("\n\n" if system else "") + f"# Tools\n<tools>{listed}\n</tools>"
    if system:
        out.append(f"{BEGIN_TURN}system\n{system}{END_TURN}\n")
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            continue
        for call in message.get("tool_calls", ()):
            call = call["function"]
            content += (
                "\n" if content else ""
            ) + '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (
                call["name"],
                json.dumps(call["arguments"]),
            )
        if role == "tool":
            role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
        out.append(f"{BEGIN_TURN}{role}\n{content}{END_TURN}\n")
    if answer:
        out.append(f"{BEGIN_TURN}assistant\n")
    return "".join(out)


def document(seed, index):
    """The text of document `index`."""
    dice = Dice(seed * (1 << 40) + index)
    kind = dice.below(100)
    if kind < 16:
        s = scene(dice)
        if dice.chance(0.2):
            s.go_on(dice.pick(PLOTS))
        title = s.title() + "\n\n" if dice.chance(0.25) else ""
        return title + s.story() + END
    shown = ()
    if kind < 88:
        pairs = (
            story_talk
            if kind < 43
            else reading_talk
            if kind < 51
            else going_on
            if kind < 54
            else small_talk
        )(dice)
        messages = []
        for ask, answer in pairs:
            messages += [
                {"role": "user", "content": typed(dice, ask)},
                {"role": "assistant", "content": answer},
            ]
    else:
        shown, messages = tools.tool_talk(dice, small)
        for message in messages:
            if message["role"] == "user":
                message["content"] = typed(dice, message["content"])
    if dice.chance(0.15):
        messages.insert(0, {"role": "system", "content": dice.pick(SYSTEMS)})
    return rendered(messages, shown) + END


# The pre-tokenizer of tokenizer.json, for ASCII: the same pieces.
PIECES = re.compile(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| "
    r"?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Tokenizer:
    """That of tokenizer.json, for ASCII text: byte-level BPE."""

    def __init__(self, path):
        read = json.loads(Path(path).read_text())
        self.ids = read["model"]["vocab"] | {t["content"]: t["id"] for t in read["added_tokens"]}
        self.ranks = {tuple(pair): i for i, pair in enumerate(read["model"]["merges"])}
        self.special = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
        self.word = lru_cache(None)(self._word)

    def _word(self, piece):
        parts = list(piece.replace(" ", "\u0120").replace("\n", "\u010a"))
        while len(parts) > 1:
            best = min(
                range(len(parts) - 1),
                key=lambda i: (self.ranks.get((parts[i], parts[i + 1]), 1 << 30), i),
            )
            if (parts[best], parts[best + 1]) not in self.ranks:
                break
            pair = (parts[best], parts[best + 1])
            merged, i = [], 0
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            parts = merged
        return [self.ids[part] for part in parts]

    def encode(self, text):
        found = []
        for part in self.special.split(text):
            if part in SPECIAL:
                found.append(self.ids[part])
            else:
                for piece in PIECES.findall(part):
                    found += self.word(piece)
        return found


def sequence(tokenizer, seed, index, length):
    """Sequence `index`: `length` tokens of documents, from the beginning of one on."""
    found, document_ = [], index << 8
    while len(found) < length:
        found += tokenizer.encode(document(seed, document_))
        document_ += 1
    return found[:length]
