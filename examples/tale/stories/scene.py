"""A scene: who is in a story, where it is, what has been told, and what one may ask about it."""

import words as known

from grammar import article, capital, write

HE = {"he": ("he", "him", "his", "himself"), "she": ("she", "her", "her", "herself")}
ADULTS = (
    ("Mom", "she"),
    ("Dad", "he"),
    ("Grandma", "she"),
    ("Grandpa", "he"),
    ("Aunt Rosa", "she"),
    ("Uncle Joe", "he"),
    ("Mom", "she"),
    ("Dad", "he"),
)
OLD = (("Old Martha", "she"), ("Old Bruno", "he"), ("Master Emil", "he"), ("Grandma", "she"))
TRAITS = (
    "kind brave curious cheerful clever gentle quiet friendly happy funny careful bright".split()
)
HOMES = (
    "a small house near the {near}",
    "a tiny cottage by the {near}",
    "a house with a {color} door",
    "a quiet village",
    "a little town by the sea",
    "a tall house at the end of the road",
    "an old farmhouse behind the hills",
    "a busy town",
)
NEAR = "forest river lake hill meadow mill bridge market".split()

OPENINGS = (
    "[Once upon a time|Once|Long ago|One day|A long time ago], there was {h.who}. {H.he} "
    "was [very |] {h.trait}"
    "[ and liked to help others| and had many ideas| and always asked questions| and loved "
    "to laugh|]. "
    "{H.he} lived in {h.home}.",
    "{H} was {a h.short}. {H.he} lived in {h.home}[ with {h.his} family|]. "
    "[{H.he} was very {h.trait}.|Everyone said that {h.he} was {h.trait}.|]",
    "[There once was|Once upon a time there lived] {h.who} in {h.home}. [{H.he} was {h.trait}, and "
    "[everyone liked {h.him}|{h.he} had a big smile|{h.he} loved long walks].|]",
    "In {h.home} lived {h.who}. {H.he} was [the most {h.trait} {h.noun} [in town|around|of all]|"
    "{a h.trait} {h.noun}|always {h.trait}].",
)
ENDINGS = (
    "[And they|They] [lived happily ever after|were happy for a long time].",
    "From that day on, {h} [always remembered what had happened|smiled whenever {h.he} "
    "thought of it].",
    "It had been a [good|wonderful|long|strange and wonderful] day.",
    "That night, {h} fell asleep with a smile.",
    "And {h} never forgot that day.",
    "[{H} was very happy.|{H} felt warm and happy.]",
    "[The end.|]",
)


class Scene:
    """words: name -> text for the grammar; paragraphs: the story so far; facts: (question, answer)
    pairs; tags: what a wish for this story would name."""

    def __init__(self, dice):
        self.dice, self.words, self.paragraphs, self.facts, self.tags = dice, {}, [], [], {}
        self._names, self._goes_on, self._figure = set(), False, False
        self.words["near"] = dice.pick(NEAR)
        self.words["color"] = dice.pick(known.COLORS[:9])

    def _name(self, names):
        if self.dice.chance(0.12):
            name = known.made_name(self.dice)
        else:
            name = self.dice.pick([n for n in names if n not in self._names])
        self._names.add(name)
        return name

    def _put(self, key, name, gender, noun, short=None):
        w, dice = self.words, self.dice
        w[key] = name
        for part, word in zip(("he", "him", "his", "self"), HE[gender]):
            w[f"{key}.{part}"] = word
        w[f"{key}.noun"], w[f"{key}.trait"] = noun, dice.pick(TRAITS)
        w[f"{key}.short"] = short or f"{dice.pick(['little', 'small', 'young'])} {noun}"
        w[f"{key}.who"] = f"{article(w[f'{key}.short'])} named {name}"

    def child(self, key, gender=None):
        gender = gender or self.dice.pick(["he", "she"])
        names, noun = (known.BOYS, "boy") if gender == "he" else (known.GIRLS, "girl")
        self._put(key, self._name(names), gender, noun)

    def animal(self, key, species=None):
        species = species or self.dice.pick(known.HEROES)
        self._put(key, self._name(known.PETS), self.dice.pick(["he", "she"]), species)
        self.words[f"{key}.sound"] = known.ANIMALS.get(species, known.ANIMALS["sheep"])[0]

    def hero(self, animals=0.35):
        """h: a child or an animal; g: a grown-up of the family."""
        if self._goes_on:
            return
        self._figure = False
        if self.dice.chance(animals):
            self.animal("h")
            self.words["h.home"] = self.dice.pick(
                [
                    "a cozy home under a tree",
                    "the middle of the forest",
                    "a warm home near the " + self.words["near"],
                    "a quiet valley",
                    "the green hills",
                    "a big meadow",
                ]
            )
            kin, he = self.dice.pick(
                [("Mother", "she"), ("Father", "he"), ("Grandmother", "she"), ("Grandfather", "he")]
            )
            self._put("g", kin, he, kin.lower())
            self.tags["kind"] = self.words["h.noun"]
        elif animals and self.dice.chance(0.2):
            self._figure = True
            noun = self.dice.pick(sorted(known.FIGURES))
            he, home = known.FIGURES[noun]
            he = self.dice.pick(he.split())
            names = known.BOYS if he == "he" else known.GIRLS
            short = f"{self.dice.pick(['young', 'young', 'kind', 'clever', 'cheerful'])} {noun}"
            self._put("h", self._name(names), he, noun, short)
            self.words["h.home"] = home
            name, he = self.dice.pick(OLD)
            self._put("g", name, he, "woman" if he == "she" else "man")
            self.tags["kind"] = noun
        else:
            self.child("h")
            self.words["h.home"] = write(self.dice.pick(HOMES), self.dice, self.words)
            name, he = self.dice.pick(ADULTS)
            self._names.add(name)
            self._put("g", name, he, "woman" if he == "she" else "man")
            self.tags["kind"] = self.words["h.noun"]
        self.tags["name"] = self.words["h"]

    def friend(self, key="f"):
        """Another of the hero's kind: a child for a child, any animal for an animal."""
        if self.words["h.noun"] in ("boy", "girl") or (self._figure and self.dice.chance(0.6)):
            self.child(key)
        else:
            others = [a for a in known.HEROES if a != self.words["h.noun"]]
            self.animal(key, self.dice.pick(others))
        self.tags["friend"] = self.words[key]

    def thing(self, key="o", among=None):
        """A toy with a colour: o is "ball", o.full "red ball", o.use what one does with it."""
        toys = sorted(among or known.TOYS)
        noun = self.dice.pick(toys if among or self.dice.chance(0.6) else known.THINGS)
        color = self.dice.pick(known.COLORS)
        w = self.words
        w[key], w[f"{key}.color"], w[f"{key}.full"] = noun, color, f"{color} {noun}"
        w[f"{key}.use"] = known.TOYS.get(noun) or self.dice.pick(known.THING_USES)
        self.tags["thing"] = noun

    def place(self, key="p", among=None):
        where = self.dice.pick(list(among or known.PLACES))
        sights, spots = known.PLACES[where]
        w = self.words
        w[key] = where
        w[f"{key}.to"] = (
            "to " + where.split(" ", 1)[1] if not where.endswith("school") else "to school"
        )
        w[f"{key}.the"] = where.split(" ", 1)[1]
        w[f"{key}.sight"], w[f"{key}.sight2"] = self.dice.picks(sights, 2)
        w[f"{key}.spot"], w[f"{key}.spot2"], w[f"{key}.spot3"] = self.dice.picks(spots, 3)
        self.tags["place"] = where

    def put(self, **more):
        """Words, of which lists are choices."""
        for name, value in more.items():
            text = self.dice.pick(value) if isinstance(value, (list, tuple)) else value
            self.words[name.replace("_", ".")] = write(text, self.dice, self.words)

    def text(self, template):
        return write(template, self.dice, self.words)

    def go_on(self, plot):
        """A second plot of the same hero, if that fits."""
        if "g" in self.words and plot.__name__ not in ("different", "race", "moon"):
            self._goes_on = True
            plot(self)

    def open(self):
        if self._goes_on:
            self.say(
                "[The next day|A week later|Some days later|In the next month|Not long "
                "after that], [something else happened|{h} had another adventure|there was "
                "more to tell]."
            )
            return
        self.say(self.dice.pick(OPENINGS))
        if self.dice.chance(0.5):
            self.ask(
                "Who is the story about?|Who is in the story?|Who is the main character?",
                "The story is about {h}, {a h.short}.|It is about {a h.noun} named {h}.",
            )
        else:
            self.ask(
                "What is the name of the {h.noun}?|What is the {h.noun} called?",
                "The {h.noun} is named {h}.|{H.his} name is {h}.",
            )

    def say(self, *templates):
        """A paragraph."""
        self.paragraphs.append(" ".join(filter(None, map(self.text, templates))))

    def close(self, *more):
        self.say(*more, self.dice.pick(ENDINGS))

    def ask(self, questions, answers):
        self.facts.append(
            (
                self.text(self.dice.pick(questions.split("|"))),
                self.text(self.dice.pick(answers.split("|"))),
            )
        )

    def title(self):
        w = self.words
        small = ("a", "an", "the", "and", "of", "to", "in", "at", "on", "by", "for", "who")
        theme = [w if w in small else capital(w) for w in self.text(self.tags["theme"]).split()]
        theme = capital(" ".join(theme))
        named = [f"{self.words['h']} the {capital(self.words['h.noun'])}", theme, theme]
        if "o" in w:
            named += [
                f"The {capital(w['o.color'])} {capital(w['o'])}",
                f"{w['h']} and the {capital(w['o'])}",
            ]
        if "f" in w:
            named += [f"{w['h']} and {w['f']}"]
        return self.dice.pick(named)

    def story(self):
        return "\n\n".join(self.paragraphs)
