"""Animals, and things of one kind: each function gives [(question, answer), ...]."""

import words as known

from grammar import article, capital, listed, say


def animal(d):
    name = d.pick(sorted(known.ANIMALS))
    sound, home, food, skill, move, color, young, cover, legs, size = known.ANIMALS[name]
    a = article(name)
    kind = d.below(9)
    if kind == 0:
        return [
            (
                say(
                    d,
                    "[What sound does {a n} make|What does {a n} say|Which sound does {a n} make]?",
                    n=name,
                ),
                f"{capital(a)} {sound}.",
            )
        ]
    if kind == 1:
        return [
            (
                say(
                    d,
                    "[Where does {a n} live|Where do {p} live|What is the home of {a n}]?",
                    n=name,
                    p=known.plural(name),
                ),
                f"{capital(a)} lives in {home}."
                if home not in ("the ice", "the savanna", "the meadow")
                else f"{capital(a)} lives {'on' if home == 'the ice' else 'in'} {home}.",
            )
        ]
    if kind == 2:
        return [
            (
                say(
                    d,
                    "[What does {a n} eat|What do {p} eat|What is the food of {a n}|What "
                    "does {a n} like to eat]?",
                    n=name,
                    p=known.plural(name),
                ),
                say(
                    d,
                    "[{A n} eats {f}.|{A n} likes {f}.|{P} eat {f}.]",
                    n=name,
                    f=food,
                    p=known.plural(name),
                ),
            )
        ]
    if kind == 3:
        return [
            (
                say(
                    d,
                    "[How many legs does {a n} have|How many legs do {p} have]?",
                    n=name,
                    p=known.plural(name),
                ),
                f"{capital(a)} has {known.NUMBERS[legs] if legs else 'no'} legs.",
            )
        ]
    if kind == 4:
        return [
            (
                say(
                    d,
                    "[What is a baby {n} called|What do you call a young {n}|What is the "
                    "name for a young {n}]?",
                    n=name,
                ),
                f"A young {name} is called {article(young)}.",
            )
        ]
    if kind == 5:
        can = {
            "fly": ("bird", "owl", "bee", "butterfly", "duck"),
            "swim": ("fish", "duck", "frog", "turtle", "whale", "penguin", "dog"),
            "bark": ("dog",),
            "climb": ("cat", "squirrel", "monkey", "bear"),
            "sing": ("bird", "whale"),
            "hop": ("rabbit", "frog"),
        }
        act = d.pick(sorted(can))
        yes = d.chance(0.5)
        pool = (
            [x for x in known.ANIMALS if x in can[act]]
            if yes
            else [
                x
                for x in (
                    "cow",
                    "pig",
                    "sheep",
                    "snail",
                    "horse",
                    "hedgehog",
                    "elephant",
                    "mouse",
                    "lion",
                )
                if not (act == "swim" and x != "snail")
            ]
        )
        x = d.pick(pool)
        return [
            (
                f"Can {article(x)} {act}?",
                f"Yes, {article(x)} can {act}." if yes else f"No, {article(x)} cannot {act}.",
            )
        ]
    if kind == 6:
        b = d.pick([x for x in known.ANIMALS if known.SIZES[x] != size])
        bigger = size > known.SIZES[b]
        if d.chance(0.5):
            return [
                (
                    say(
                        d,
                        "[Which is bigger, {a x} or {a y}|What is bigger, {a x} or {a y}]?",
                        x=name,
                        y=b,
                    ),
                    f"{capital(article(name if bigger else b))} is bigger than "
                    f"{article(b if bigger else name)}.",
                )
            ]
        word, right = ("bigger", bigger) if d.chance(0.5) else ("smaller", not bigger)
        return [
            (
                f"Is {a} {word} than {article(b)}?",
                f"Yes, {a} is {word} than {article(b)}."
                if right
                else f"No, {a} is {'bigger' if word == 'smaller' else 'smaller'} than "
                f"{article(b)}.",
            )
        ]
    if kind == 7:
        return [
            (
                say(
                    d,
                    "[What is on the body of {a n}|Does {a n} have fur, feathers or "
                    "scales|What covers {a n}]?",
                    n=name,
                ),
                f"{capital(a)} has {cover}.",
            )
        ]
    return [
        (
            say(
                d,
                "[Tell me about {p}|What do you know about {p}|Tell me something about {a "
                "n}|What is {a n}].",
                n=name,
                p=known.plural(name),
            )
            .replace(
                "What do you know about " + known.plural(name) + ".",
                "What do you know about " + known.plural(name) + "?",
            )
            .replace(f"What is {a}.", f"What is {a}?"),
            say(
                d,
                "{A n} is an animal. It "
                + ("lives in {h}" if home not in ("the ice",) else "lives on {h}")
                + " and eats {f}. [A young {n} is called {a y}.|It [often |]is {c}.|It has "
                + (f"{known.NUMBERS[legs]} legs" if legs else "no legs")
                + ".] [It {s}.|It is good at this: it can {k}.]",
                n=name,
                h=home,
                f=food,
                y=young,
                c=color,
                s=sound,
                k=skill,
            ),
        )
    ]


def category(d):
    kind = d.pick(sorted(known.KINDS))
    if d.chance(0.4):
        count = d.between(2, 5)
        found = d.picks(known.KINDS[kind], count)
        return [
            (
                say(
                    d,
                    "[Name {c} {p}|List {c} {p}|Tell me {c} {p}|Can you name {c} {p}|Give "
                    "me {c} {p}|I need the names of {c} {p}].",
                    c=known.NUMBERS[count] if d.chance(0.7) else str(count),
                    p=known.plural(kind),
                ),
                say(
                    d,
                    "[{L}.|Here are {c} {p}: {l}.|{C} {p} are {l}.]",
                    l=listed(found),
                    c=known.NUMBERS[count],
                    p=known.plural(kind),
                ),
            )
        ]
    if d.chance(0.4):
        it = d.pick(known.KINDS[kind])
        if kind == "color":
            return [(f"Is {it} a color?", f"Yes, {it} is a color.")]
        right = d.chance(0.5)
        other = d.pick(
            [
                k
                for k in ("animal", "fruit", "vegetable", "flower", "tool", "vehicle", "tree")
                if it not in known.KINDS[k] and not (kind == "bird" and k == "animal")
            ]
        )
        return [
            (
                f"Is {article(it)} {article(kind if right else other)}?",
                f"Yes, {article(it)} is {article(kind)}."
                if right
                else f"No, {article(it)} is not {article(other)}. It is {article(kind)}.",
            )
        ]
    four = d.picks(known.KINDS[kind], 3)
    other = d.pick(
        [k for k in ("fruit", "vehicle", "tool", "color", "shape", "instrument") if k != kind]
    )
    odd = d.pick([x for x in known.KINDS[other] if x not in known.KINDS[kind]])
    order = d.picks([*four, odd], 4)
    return [
        (
            say(
                d,
                "[Which word does not belong: {l}|Which one is different: {l}|Find the odd "
                "one: {l}]?",
                l=listed(order, "or"),
            ),
            f"{capital(odd)} does not belong. The others are {known.plural(kind)}.",
        )
    ]
