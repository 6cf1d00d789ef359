"""Small tasks whose answer follows from the question: sums, order, where things are, rewriting."""

import words as known

from grammar import article, capital, listed, say

WORDS = known.NUMBERS


def number(d, n):
    return WORDS[n] if n <= 20 and d.chance(0.35) else str(n)


def arithmetic(d):
    kind = d.below(10)
    if kind < 4:
        a, b = (
            (d.below(21), d.below(21)) if d.chance(0.75) else (d.between(10, 89), d.between(1, 9))
        )
        sign, word, c = "+", "plus", a + b
    elif kind < 7:
        a = d.between(1, 20) if d.chance(0.75) else d.between(20, 99)
        b = d.between(0, min(a, 20))
        sign, word, c = "-", "minus", a - b
    elif kind < 9:
        a, b = d.between(0, 10), d.between(0, 10)
        sign, word, c = "*", "times", a * b
    else:
        b, c = d.between(1, 10), d.between(1, 10)
        a, sign, word = b * c, "/", "divided by"
    if d.chance(0.5):
        ask = say(
            d,
            "[What is {x}|How much is {x}|{x} is|What's {x}|Calculate {x}|Can you tell me "
            "what {x} is]",
            x=f"{a}{sign}{b}" if d.chance(0.3) else f"{a} {sign} {b}",
        )
    else:
        ask = say(
            d,
            "[What is {x}|How much is {x}|What's {x}|Tell me {x}|{X} is]",
            x=f"{number(d, a)} {word} {number(d, b)}",
        )
    ask += d.pick(["?", "?", "?", "", "."])
    return [
        (
            ask,
            d.pick(
                [
                    f"{a} {word} {b} is {c}.",
                    f"{a} {sign} {b} = {c}.",
                    f"It is {c}.",
                    f"{a} {word} {b} is {c}.",
                ]
            ),
        )
    ]


def word_problem(d):
    name = d.pick(known.GIRLS + known.BOYS)
    he = "She" if name in known.GIRLS else "He"
    other = d.pick([n for n in known.GIRLS + known.BOYS if n != name])
    noun = d.pick(
        known.FRUITS
        + ["ball", "book", "marble", "flower", "coin", "cookie", "stone", "shell", "egg", "nut"]
    )
    many = lambda n: f"{WORDS[n]} {known.plural(noun) if n != 1 else noun}"
    a = d.between(2, 10)
    if d.chance(0.5):
        b = d.between(1, 10)
        ask = say(
            d,
            f"{name} has {many(a)}. [{other} gives {'her' if he == 'She' else 'him'} "
            f"{many(b)}|{he} finds {many(b)} more|{he} gets {many(b)} more]. How many "
            f"{known.plural(noun)} does {name} have[ now|]?",
        )
        c, sign = a + b, "plus"
    else:
        b = d.between(1, a)
        eats = noun in known.FRUITS + ["cookie", "egg", "nut"]
        ask = say(
            d,
            f"{name} has {many(a)}. {he} [{'eats' if eats else 'loses'} {WORDS[b]}|gives "
            f"{WORDS[b]} to {other}|loses {WORDS[b]}]. How many {known.plural(noun)} does "
            f"{name} have [left|now]?",
        )
        c, sign = a - b, "minus"
    answer = (
        f"{name} has "
        f"{many(c) if c else 'no ' + known.plural(noun)}{' left' if sign == 'minus' else ''}."
    )
    if d.chance(0.6):
        answer = f"{a} {sign} {b} is {c}. " + answer
    return [(ask, answer)]


def counting(d):
    kind = d.below(6)
    if kind == 0:
        a = d.pick([1, 1, 1, 0, 2, 5, 10])
        b = a + d.between(3, 10)
        return [
            (
                say(
                    d,
                    "[Count from {a} to {b}|Count to {b}, beginning with {a}|Please count "
                    "from {a} to {b}].",
                    a=str(a),
                    b=str(b),
                ),
                ", ".join(map(str, range(a, b + 1))) + ".",
            )
        ]
    if kind == 1:
        b = d.between(3, 20)
        words = d.chance(0.4) and b <= 12
        return [
            (
                f"Count to {WORDS[b] if words else b}.",
                capital(", ".join(WORDS[i] if words else str(i) for i in range(1, b + 1))) + ".",
            )
        ]
    if kind == 2:
        a = d.between(5, 12)
        return [
            (
                say(
                    d,
                    "[Count backwards from {a}|Count down from {a}|Count down from {a} to 1].",
                    a=str(a),
                ),
                ", ".join(map(str, range(a, 0, -1))) + ".",
            )
        ]
    if kind == 3:
        step = d.pick([2, 5, 10])
        n = d.between(4, 8)
        return [
            (
                f"Count by {WORDS[step]}s to {step * n}.".replace("fives", "fives"),
                ", ".join(map(str, range(step, step * n + 1, step))) + ".",
            )
        ]
    a = d.between(1, 98)
    if kind == 4:
        after = d.chance(0.5)
        return [
            (
                f"{'Which' if d.chance(0.5) else 'What'} number comes "
                f"{'after' if after else 'before'} {a}?",
                f"{a + 1 if after else a - 1} comes {'after' if after else 'before'} {a}.",
            )
        ]
    b = d.between(1, 99)
    while b == a:
        b = d.between(1, 99)
    bigger = d.chance(0.5)
    return [
        (
            f"Which {'number ' if d.chance(0.5) else ''}is "
            f"{'bigger' if bigger else 'smaller'}, {a} or {b}?",
            f"{max(a, b) if bigger else min(a, b)} is {'bigger' if bigger else 'smaller'} "
            f"than {min(a, b) if bigger else max(a, b)}.",
        )
    ]


def where_is(d):
    """Things that are moved."""
    a, b = known.people(d, 2)
    thing = d.pick(["ball", "key", "book", "apple", "doll", "coin", "letter", "cake", "hat", "cup"])
    p, q, r = d.picks(
        [
            "in the box",
            "in the bag",
            "on the table",
            "under the bed",
            "in the drawer",
            "on the shelf",
            "in the garden",
            "behind the door",
            "in the basket",
            "on the chair",
        ],
        3,
    )
    text = f"{a} {d.pick(['puts', 'hides', 'leaves'])} the {thing} {p}. "
    last = p
    if d.chance(0.75):
        text += (
            f"Then {b} moves it. Now it is {q}. "
            if d.chance(0.4)
            else f"{b} takes it and puts it {q}. "
        )
        last = q
    if last == q and d.chance(0.3):
        text += f"Later, {a} puts it {r}. "
        last = r
    return [(text + f"Where is the {thing}{d.pick(['', ' now'])}?", f"The {thing} is {last}.")]


COMPARE = (
    ("taller", "tallest", "shorter", "shortest"),
    ("older", "oldest", "younger", "youngest"),
    ("faster", "fastest", "slower", "slowest"),
    ("stronger", "strongest", "weaker", "weakest"),
)


def order(d):
    a, b, c = known.people(d, 3)
    more, most, less, least = d.pick(COMPARE)
    facts = [
        d.pick([f"{a} is {more} than {b}.", f"{b} is {less} than {a}."]),
        d.pick([f"{b} is {more} than {c}.", f"{c} is {less} than {b}."]),
    ]
    if d.chance(0.3):
        facts.reverse()
    if d.chance(0.3):
        x, y, yes = d.pick([(a, c, True), (c, a, False), (a, b, True), (c, b, False)])
        return [
            (
                " ".join(facts) + f" Is {x} {more} than {y}?",
                f"{'Yes' if yes else 'No'}, {x} is {more if yes else less} than {y}.",
            )
        ]
    top = d.chance(0.5)
    return [
        (
            " ".join(facts) + f" Who is the {most if top else least}?",
            f"{a if top else c} is the {most if top else least}.",
        )
    ]


def logic(d):
    name = d.pick(known.GIRLS + known.BOYS + known.PETS)
    group, what = d.pick(
        [
            ("birds", "have wings"),
            ("cats", "like milk"),
            ("fish", "can swim"),
            ("trees", "have roots"),
            ("dogs", "can bark"),
            ("bakers", "make bread"),
            ("roses", "smell nice"),
            ("children", "like stories"),
            ("cars", "have wheels"),
            ("stars", "shine"),
            ("frogs", "can jump"),
            ("horses", "eat hay"),
        ]
    )
    one = {"children": "child", "fish": "fish", "roses": "rose", "horses": "horse"}.get(
        group, group[:-1]
    )
    does = (
        what.replace("have ", "has ")
        .replace("like ", "likes ")
        .replace("make ", "makes ")
        .replace("smell ", "smells ")
        .replace("eat ", "eats ")
        .replace("shine", "shines")
    )
    if what.startswith("can"):
        question = f"Can {name} {what[4:]}?"
    else:
        question = f"Does {name} {what}?"
    if d.chance(0.7):
        return [
            (
                f"All {group} {what}. {name} is {article(one)}. {question}",
                f"Yes. {name} is {article(one)}, and all {group} {what}. So {name} {does}.",
            )
        ]
    return [
        (
            f"No {one} is purple. {name} is {article(one)}. Is {name} purple?",
            f"No. {name} is {article(one)}, and no {one} is purple.",
        )
    ]


def rewriting(d):
    kind = d.below(7)
    if kind == 0:
        text = " ".join(
            d.picks(known.COLORS[:9] + known.FRUITS + sorted(known.ANIMALS), d.between(1, 4))
        )
        return [(say(d, "[Repeat after me|Say|Repeat|Say this|Repeat this]") + f": {text}", text)]
    if kind == 1:
        items = d.picks(sorted(known.ANIMALS) + known.FRUITS, d.between(3, 4))
        return [
            (
                say(
                    d,
                    "[Put these words in order|Sort these words|Sort these words by the "
                    "alphabet|Put these in alphabetical order]",
                )
                + f": {', '.join(items)}.",
                capital(", ".join(sorted(items))) + ".",
            )
        ]
    if kind == 2:
        items = d.picks(sorted(known.ANIMALS) + known.COLORS[:9], d.between(3, 4))
        return [
            (
                say(d, "[Say these words backwards|Reverse this list|Turn this list around]")
                + f": {', '.join(items)}.",
                capital(", ".join(items[::-1])) + ".",
            )
        ]
    if kind == 3:
        a, b = known.people(d, 2)
        act = d.pick(
            [
                "goes to the park",
                "reads a book",
                "eats an apple",
                "plays with the dog",
                "sings a song",
                "has a red hat",
                "likes the rain",
                "runs to school",
            ]
        )
        return [
            (
                say(
                    d,
                    "[Change {a} to {b}|Replace {a} with {b}|Use {b} instead of {a}]: {a} {t}.",
                    a=a,
                    b=b,
                    t=act,
                ),
                f"{b} {act}.",
            )
        ]
    if kind == 4:
        name, he = d.pick([(n, "She") for n in known.GIRLS] + [(n, "He") for n in known.BOYS])
        act = d.pick(
            [
                "happy",
                "tired",
                "in the garden",
                "at school",
                "very brave",
                "a good cook",
                "late",
                "hungry",
            ]
        )
        return [
            (
                say(d, "[Make a question|Make this a question|Turn this into a question]: ")
                + f" {name} is {act}.",
                f"Is {name} {act}?",
            )
        ]
    if kind == 5:
        name = d.pick(known.GIRLS + known.BOYS)
        act = d.pick(
            ["happy", "tired", "in the garden", "at school", "afraid", "late", "hungry", "at home"]
        )
        return [
            (
                say(d, "[Say the opposite with not|Make this negative|Put in the word not]: ")
                + f" {name} is {act}.",
                f"{name} is not {act}.",
            )
        ]
    items = d.picks(known.FRUITS + known.VEGETABLES + known.CLOTHES, d.between(2, 5))
    return [
        (
            say(d, "[Make a list of these|Write this as a list|Make a list]")
            + f": {', '.join(items)}.",
            "\n".join(f"- {x}" for x in items),
        )
    ]


def from_list(d):
    items = d.picks(known.FRUITS + known.TOOLS + known.CLOTHES, d.between(3, 5))
    a = d.pick(known.GIRLS + known.BOYS)
    text = f"{a} buys {listed([article(x) for x in items])}. "
    kind = d.below(3)
    if kind == 0:
        return [(text + f"How many things does {a} buy?", f"{a} buys {WORDS[len(items)]} things.")]
    if kind == 1:
        place = d.pick(["first", "last"])
        return [
            (
                text + f"What is the {place} thing?",
                f"The {place} thing is {article(items[0 if place == 'first' else -1])}.",
            )
        ]
    has = d.chance(0.5)
    x = d.pick(items) if has else d.pick([y for y in known.FRUITS + known.TOOLS if y not in items])
    return [
        (
            text + f"Does {a} buy {article(x)}?",
            f"Yes, {a} buys {article(x)}." if has else f"No, {a} does not buy {article(x)}.",
        )
    ]


def who_has(d):
    names = known.people(d, 3)
    things = d.picks(sorted(known.TOYS), 3)
    colors = d.picks(known.COLORS[:9], 3)
    text = " ".join(f"{n} has {article(c + ' ' + t)}." for n, t, c in zip(names, things, colors))
    i = d.below(3)
    kind = d.below(3)
    if kind == 0:
        return [(text + f" Who has the {things[i]}?", f"{names[i]} has the {things[i]}.")]
    if kind == 1:
        return [
            (
                text + f" What does {names[i]} have?",
                f"{names[i]} has {article(colors[i] + ' ' + things[i])}.",
            )
        ]
    return [(text + f" What color is the {things[i]}?", f"The {things[i]} is {colors[i]}.")]


SKILLS = (
    (arithmetic, 18),
    (word_problem, 6),
    (counting, 9),
    (where_is, 5),
    (order, 9),
    (logic, 3),
    (rewriting, 8),
    (from_list, 6),
    (who_has, 8),
)
