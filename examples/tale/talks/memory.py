"""What was said before is asked again; and all of the talks, with their weights."""

import words as known

from grammar import say
from talks.animals import animal, category
from talks.knowledge import fact, how_to
from talks.people import feeling, goodbye, greeting, how_are_you, thanks, who
from talks.verses import joke, poem, riddle, unknown
from talks.world import calendar, color_of, colored, forms, letters, opposite, place_of, rhyme, use


def small(d):
    return d.pick([color_of, opposite, calendar, animal, category, use, joke, feeling, rhyme])(d)


def my_name(d):
    (name,) = known.people(d, 1)
    pairs = [
        (
            say(
                d,
                "[My name is {n}|I am {n}|I'm {n}|Call me {n}|You can call me {n}|Hello, "
                "my name is {n}|Hi, I am {n}][.|!|]",
                n=name,
            ),
            say(
                d,
                "[Nice to meet you, {n}!|Hello, {n}!|Hi, {n}! It is nice to meet you.|What "
                "a nice name, {n}!] [How can I help you?|What would you like to do?|I am "
                "Tale.|Would you like a story?]",
                n=name,
            ),
        )
    ]
    if d.chance(0.65):
        if d.chance(0.5):
            pairs += small(d)
        pairs.append(
            (
                say(
                    d,
                    "[What is my name|Do you remember my name|Do you know my name|Who am "
                    "I|What was my name|What's my name]?",
                ),
                say(
                    d,
                    "[Your name is {n}.|You are {n}.|Your name is {n}, of course.|You told "
                    "me that your name is {n}.]",
                    n=name,
                ),
            )
        )
    return pairs


def my_favorite(d):
    what, items = d.pick(
        [
            ("color", known.COLORS[:9]),
            ("animal", known.HEROES),
            ("fruit", known.FRUITS),
            ("flower", known.FLOWERS),
            ("day", known.DAYS),
            ("season", known.SEASONS),
        ]
    )
    it = d.pick(items)
    pairs = [
        (
            say(
                d,
                "[My favorite {w} is {i}|My favorite {w} is {i}|I like {i} most of all. It "
                "is my favorite {w}][.|]",
                w=what,
                i=it if what in ("color", "day", "season") else "the " + it,
            ),
            say(
                d,
                "[{I} is a good choice!|That is a nice {w}!|I like that, too.] [||Why do "
                "you like it?]",
                w=what,
                i=it if what in ("color", "day", "season") else "the " + it,
            ),
        )
    ]
    if d.chance(0.7):
        if d.chance(0.4):
            pairs += small(d)
        pairs.append(
            (
                say(
                    d,
                    "[What is my favorite {w}|Do you remember my favorite {w}|Which {w} do "
                    "I like most]?",
                    w=what,
                ),
                say(
                    d,
                    "Your favorite {w} is {i}.",
                    w=what,
                    i=it if what in ("color", "day", "season") else "the " + it,
                ),
            )
        )
    return pairs


SKILLS = (
    (greeting, 3),
    (how_are_you, 2),
    (feeling, 3),
    (who, 9),
    (thanks, 3),
    (goodbye, 2),
    (my_name, 5),
    (my_favorite, 3),
    (color_of, 4),
    (colored, 2),
    (opposite, 5),
    (rhyme, 4),
    (calendar, 6),
    (animal, 8),
    (category, 6),
    (use, 4),
    (place_of, 4),
    (letters, 5),
    (forms, 5),
    (joke, 3),
    (riddle, 3),
    (poem, 2),
    (unknown, 4),
    (fact, 10),
    (how_to, 3),
)
