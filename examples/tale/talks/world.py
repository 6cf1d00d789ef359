"""Colors, words and days: each function gives [(question, answer), ...]."""

import words as known

from grammar import article, capital, listed, say


def color_of(d):
    thing = d.pick(sorted(known.THING_COLORS))
    color, named = (
        known.THING_COLORS[thing],
        "the " + thing if thing in ("sky", "sun", "sea", "night") else thing,
    )
    if thing in ("grass", "snow", "coal", "milk", "chocolate", "corn", "butter", "blood", "fire"):
        be = f"{capital(thing)} is"
    else:
        be = f"{capital(named if named != thing else article(thing))} is"
    subject = be[:-3]
    if d.chance(0.25):
        other = d.pick([c for c in known.COLORS[:9] if c != color])
        right = d.chance(0.5)
        low = subject[0].lower() + subject[1:]
        return [
            (
                f"Is {low} {color if right else other}?",
                f"Yes, {low} is {color}." if right else f"No, {low} is not {other}. It is {color}.",
            )
        ]
    low = subject[0].lower() + subject[1:]
    return [
        (
            say(
                d,
                "[What color is {x}|Which color is {x}|What is the color of {x}|Tell me "
                "the color of {x}]?",
                x=low,
            ),
            say(d, "[{X} is {c}.|It is {c}.|{X} is {c}.]", x=low, c=color),
        )
    ]


def colored(d):
    color = d.pick(sorted(set(known.THING_COLORS.values())))
    things = [
        t for t, c in known.THING_COLORS.items() if c == color and t not in ("night", "blood")
    ]
    thing = d.pick(things)
    named = (
        "the " + thing
        if thing in ("sky", "sun", "sea")
        else thing
        if thing in ("grass", "snow", "coal", "milk", "chocolate", "corn", "butter", "fire")
        else article(thing)
    )
    return [
        (
            say(
                d,
                "[Name something {c}|What is {c}|Tell me something that is {c}|Can you "
                "name {a c} thing].",
                c=color,
            )
            .replace("What is " + color + ".", "What is " + color + "?")
            .replace("thing.", "thing?"),
            capital(named) + f" is {color}.",
        )
    ]


def opposite(d):
    a, b = d.pick(known.OPPOSITES)
    if d.chance(0.5):
        a, b = b, a
    return [
        (
            say(
                d,
                "[What is the opposite of {a}|What's the opposite of {a}|Tell me the "
                "opposite of {a}|What is the opposite of the word {a}|Opposite of {a}|The "
                "opposite of {a}]?",
                a=a,
            ),
            say(
                d,
                "[The opposite of {a} is {b}.|It is {b}.|{B}.|The opposite of {a} is {b}.]",
                a=a,
                b=b,
            ),
        )
    ]


def rhyme(d):
    group = d.pick(known.RHYMES)
    a = d.pick(group)
    b = d.pick([w for w in group if w != a])
    if d.chance(0.25):
        other = d.pick(d.pick([g for g in known.RHYMES if g is not group]))
        right = d.chance(0.5)
        return [
            (
                f"Does {a} rhyme with {b if right else other}?",
                f"Yes, {a} rhymes with {b}."
                if right
                else f"No, {a} does not rhyme with {other}. But {a} rhymes with {b}.",
            )
        ]
    return [
        (
            say(
                d,
                "[What rhymes with {a}|Which word rhymes with {a}|Tell me a word that "
                "rhymes with {a}|Find a rhyme for {a}|What is a rhyme for {a}]?",
                a=a,
            ),
            say(d, "[{B} rhymes with {a}.|{B}.|The word {b} rhymes with {a}.]", a=a, b=b),
        )
    ]


def calendar(d):
    kind = d.below(6)
    if kind < 3:
        rows, name = (known.DAYS, "day") if d.chance(0.6) else (known.MONTHS, "month")
        i, step = d.below(len(rows)), d.pick([1, -1])
        word = "after" if step == 1 else "before"
        ask = say(
            d,
            "[Which {k} comes {w} {x}|What {k} comes {w} {x}|What comes {w} {x}|Which {k} "
            "is {w} {x}|What is the {k} {w} {x}]?",
            k=name,
            w=word,
            x=rows[i],
        )
        answer = rows[(i + step) % len(rows)]
        return [
            (
                ask,
                say(
                    d,
                    "[{y} comes {w} {x}.|It is {y}.|{y}.|The {k} {w} {x} is {y}.]",
                    y=answer,
                    w=word,
                    x=rows[i],
                    k=name,
                ),
            )
        ]
    if kind == 3:
        i = d.below(7)
        tomorrow = d.chance(0.5)
        if tomorrow:
            return [
                (
                    say(
                        d,
                        "[Today is {x}. What is tomorrow?|If today is {x}, what day is "
                        "tomorrow?|It is {x} today. What day is tomorrow?]",
                        x=known.DAYS[i],
                    ),
                    say(
                        d,
                        "[Tomorrow is {y}.|If today is {x}, tomorrow is {y}.]",
                        x=known.DAYS[i],
                        y=known.DAYS[(i + 1) % 7],
                    ),
                )
            ]
        return [
            (
                say(
                    d,
                    "[Today is {x}. What was yesterday?|If today is {x}, what day was "
                    "yesterday?|It is {x} today. What day was yesterday?]",
                    x=known.DAYS[i],
                ),
                say(
                    d,
                    "[Yesterday was {y}.|If today is {x}, yesterday was {y}.]",
                    x=known.DAYS[i],
                    y=known.DAYS[(i - 1) % 7],
                ),
            )
        ]
    if kind == 4:
        return d.pick(
            [
                [
                    (
                        say(d, "[How many days are in a week|How many days does a week have]?"),
                        "A week has seven days.",
                    )
                ],
                [
                    (
                        say(d, "[How many months are in a year|How many months does a year have]?"),
                        "A year has twelve months.",
                    )
                ],
                [
                    (
                        say(
                            d,
                            "[Name the days of the week|What are the days of the week|List "
                            "the days of the week].",
                        ).replace(
                            "What are the days of the week.", "What are the days of the week?"
                        ),
                        f"The days of the week are {listed(known.DAYS)}.",
                    )
                ],
                [
                    (
                        say(
                            d, "[Name the seasons|What are the four seasons|List the seasons]."
                        ).replace("What are the four seasons.", "What are the four seasons?"),
                        "The four seasons are spring, summer, autumn and winter.",
                    )
                ],
                [
                    (
                        say(d, "[Name the months|List the months of the year|List all months]."),
                        f"The months are {listed(known.MONTHS)}.",
                    )
                ],
                [("What is the first day of the week?", "The first day of the week is Monday.")],
                [
                    (
                        "What is the last month of the year?",
                        "The last month of the year is December.",
                    )
                ],
                [
                    (
                        "What is the first month of the year?",
                        "The first month of the year is January.",
                    )
                ],
                [("How many hours are in a day?", "A day has 24 hours.")],
                [("How many minutes are in an hour?", "An hour has 60 minutes.")],
                [("How many seconds are in a minute?", "A minute has 60 seconds.")],
            ]
        )
    i = d.below(4)
    step = d.pick([1, -1])
    x, y, w = known.SEASONS[i], known.SEASONS[(i + step) % 4], "after" if step == 1 else "before"
    return [(f"Which season comes {w} {x}?", f"{capital(y)} comes {w} {x}.")]


def use(d):
    thing = d.pick(sorted(known.USES))
    a = thing if thing in ("soap", "glasses", "scissors") else article(thing)
    if d.chance(0.6):
        return [
            (
                say(
                    d,
                    "[What do you do with {x}|What is {x} for|What can you do with {x}|Why "
                    "do people need {x}]?",
                    x=a,
                )
                .replace("is glasses", "are glasses")
                .replace("is scissors", "are scissors"),
                f"With {a}, you can {known.USES[thing]}.",
            )
        ]
    return [
        (
            say(d, "[What do you need to {u}|What helps you to {u}]?", u=known.USES[thing]),
            f"You need {a} to {known.USES[thing]}.",
        )
    ]


def place_of(d):
    if d.chance(0.5):
        x = d.pick(sorted(known.PLACES_OF))
        return [
            (
                say(
                    d,
                    "[Where do you find {x}|Where are {x}|Where can I see {x}|Where can I "
                    "find {x}]?",
                    x=x,
                )
                .replace("are bread", "is bread")
                .replace("are sand", "is sand")
                .replace("are snow", "is snow")
                .replace("are fish", "is a fish"),
                f"You find {x} {known.PLACES_OF[x]}.",
            )
        ]
    job = d.pick(sorted(known.JOBS))
    if d.chance(0.6):
        return [
            (
                say(d, "[What does {a j} do|What is the work of {a j}|What is {a j}]?", j=job),
                f"{capital(article(job))} {known.JOBS[job]}.",
            )
        ]
    return [
        (
            say(d, "[Who {w}|Which person {w}]?", w=known.JOBS[job]),
            f"{capital(article(job))} {known.JOBS[job]}.",
        )
    ]


def letters(d):
    kind = d.below(4)
    abc = "abcdefghijklmnopqrstuvwxyz".upper()
    if kind == 0:
        i, step = 1 + d.below(24), d.pick([1, -1])
        w = "after" if step == 1 else "before"
        return [(f"Which letter comes {w} {abc[i]}?", f"{abc[i + step]} comes {w} {abc[i]}.")]
    words = [
        w
        for w in known.FRUITS
        + known.TREES
        + sorted(known.ANIMALS)
        + known.COLORS
        + sorted(known.TOYS)
        if " " not in w
    ]
    word = d.pick(words)
    if kind == 1:
        return [
            (
                say(
                    d,
                    "[What is the first letter of {w}|Which letter does {w} begin with|{W} "
                    "begins with which letter]?",
                    w=word,
                ),
                f"The word {word} begins with {word[0].upper()}.",
            )
        ]
    if kind == 2:
        return [
            (
                say(
                    d,
                    "[Spell {w}|Spell the word {w}|How do you spell {w}|Can you spell {w}][?|.|]",
                    w=word,
                ),
                f"{'-'.join(word.upper())}.",
            )
        ]
    letter = d.pick(sorted({w[0] for w in words}))
    return [
        (
            f"Name a word that begins with {letter.upper()}.",
            f"{capital(d.pick([w for w in words if w[0] == letter]))} begins with "
            f"{letter.upper()}.",
        )
    ]


def forms(d):
    if d.chance(0.5):
        noun = d.pick(sorted(set(known.PLURALS) - {"clothes"}) + known.TOOLS + known.FRUITS)
        return [
            (
                say(
                    d,
                    "[What is the plural of {n}|One {n}, two what|What is the plural of "
                    "the word {n}]?",
                    n=noun,
                ),
                say(
                    d, "[The plural of {n} is {p}.|One {n}, two {p}.]", n=noun, p=known.plural(noun)
                ),
            )
        ]
    verb = d.pick(sorted(known.PAST))
    if d.chance(0.5):
        return [
            (
                say(
                    d,
                    "[What is the past of {v}|What is the past tense of {v}|Put {v} into "
                    "the past]?",
                    v=verb,
                ).replace("past?", "past."),
                say(
                    d,
                    "[The past of {v} is {p}.|Today I {v}, yesterday I {p}.]",
                    v=verb,
                    p=known.PAST[verb],
                ),
            )
        ]
    who = d.pick(["I", "We", "They", "The children"])
    when = d.pick(["every day", "in the garden", "with a friend", "at home"])
    return [
        (
            say(d, "[Put this into the past: |Say this in the past: |Past tense: ]")
            + f" {who} {verb} {when}.",
            f"{who} {known.PAST[verb]} {when}.",
        )
    ]
