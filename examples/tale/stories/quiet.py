"""Plots of home and heart."""

import words as known

from stories.adventures import aside


def night(s):
    s.hero()
    s.put(
        sound=[
            "a soft knock on the window",
            "a creak on the stairs",
            "a strange hum",
            "a rustle behind the curtain",
            "a scratch at the door",
        ],
        was=[
            "only a branch in the wind",
            "only the cat",
            "only an old clock",
            "only a moth that wanted to get to the light",
            "only a small mouse",
        ],
        help=[
            "warm milk",
            "a song about the moon",
            "a story about a sleepy star",
            "a soft blanket",
        ],
    )
    s.tags["theme"] = s.dice.pick(
        ["a night without sleep", "bedtime", "a strange sound", "the moon"]
    )
    s.open()
    s.say(
        "One night, {h} could not sleep. [The moon was round and bright.|Outside, it was "
        "dark and still.] {H.he} turned to the left and to the right. {H.he} counted "
        "[sheep|stars], but it did not help. Then {h.he} heard {sound}."
    )
    s.ask("Why was {h} awake?|What was wrong?", "{H} could not sleep.")
    s.ask("What did {h} hear?", "{H} heard {sound}.|{H.he} heard {sound}.")
    s.say(
        "{H} [pulled the blanket over {h.his} head|held {h.his} breath|called for {g}]. "
        '[{G} came in with a small light|{G} heard it and came]. "[Let us look '
        'together|Shall we see what it is]?" {g.he} asked. They looked, and it was {was}. '
        "{H} had to laugh."
    )
    s.ask("What was the sound?|What made the noise?", "It was {was}.")
    warm = s.words["help"] in ("warm milk", "a soft blanket")
    s.put(
        gave="gave {h.him} {help}"
        if warm
        else "sang {help}"
        if "song" in s.words["help"]
        else "told {h.him} {help}"
    )
    s.say("Then {g} [sat on the bed|came close] and {gave}.")
    s.ask("What did {g} do?|What helped {h} to sleep?", "{G} {gave}.")
    s.say(
        '{H} yawned. [{H.his} eyes became heavy.|The moon looked in at the window.] "Good '
        'night, {g}," {h.he} [whispered|said]. "Good night, {h}," said {g}. And soon {h} '
        "was asleep[, and dreamed of the stars|, with a smile on {h.his} face|]."
    )


def kindness(s):
    s.hero(animals=0.2)
    s.place("p", ["at the market", "in the park", "by the river"])
    s.put(
        coins=["two", "three", "five"],
        want=["a red balloon", "a toy boat", "a piece of cake", "a new pencil", "a bag of nuts"],
        old=["an old woman", "an old man", "a tired traveler", "a hungry dog"],
        gave=["bread", "soup", "an apple"],
        back=["a small wooden bird", "a magic seed", "a shining stone", "a little bell"],
    )
    dog = s.words["old"] == "a hungry dog"
    s.words["the old"] = "the dog" if dog else "the " + s.words["old"].split(" ", 1)[1]
    s.tags["theme"] = s.dice.pick(["kindness", "giving", "{old}", "{coins} coins"])
    s.open()
    s.say(
        '[One day|On Saturday], {g} gave {h} {coins} coins. "[Buy something nice|You have '
        'worked hard]," said {g}. {H} went {p.to} to buy {want}. [{H.he} held the coins '
        "tightly.|{H.he} was so happy that {h.he} hopped.]"
    )
    s.ask("How many coins did {h} have?", "{H} had {coins} coins.|{Coins}.")
    s.ask("What did {h} want to buy?", "{H} wanted to buy {want}.")
    s.say(
        "{P.spot}, {h.he} saw {old}. "
        + (
            "It looked at {h} with sad eyes. It was so thin!"
            if dog
            else '"[I have not eaten today|I am so hungry]," said {the old}.'
        )
        + " {H} looked at the coins and thought of {want}. Then {h.he} [made up {h.his} "
        "mind|smiled] and bought {gave} for {the old}."
    )
    s.ask("Who did {h} meet?|Who was hungry?", "{H} met {old}.|It was {old}.")
    s.ask("What did {h} buy?", "{H} bought {gave} for {the old}.")
    s.close(
        "The dog followed {h} home and [barked happily|never left {h.him} again]. {G} "
        'laughed. "You went to buy {want}, and you found a friend!"'
        if dog
        else '"You have a good heart," said {the old}. "Take this." It was {back}. [{H} kept it '
        'for many years.|It was worth more than {want}.] "[Kindness always comes back|What '
        'you give comes back to you]," said {g} that evening.'
    )
    if not dog:
        s.ask(
            "What did {the old} give {h}?|What did {h} get?", "{H} got {back}.|{H.he} got {back}."
        )


def surprise(s):
    s.hero()
    s.friend()
    s.put(
        day=known.DAYS,
        gift=[
            "a book with golden letters",
            "a little drum",
            "a pair of red boots",
            "a paper crown",
            "a box of colors",
        ],
        cake=["a chocolate cake", "a cherry cake", "a cake with candles", "an apple cake"],
        busy=[
            "had no time",
            "ran away quickly",
            "whispered with the others",
            "looked at the ground",
        ],
    )
    s.tags["theme"] = s.dice.pick(["a birthday", "a surprise party", "a surprise"])
    s.open()
    s.say(
        "It was {day}, and it was {h}'s birthday. But [nobody said anything|no one seemed "
        'to remember]. {G} [was busy|only said "good morning"]. {H} went to {f}, but {f} '
        '{busy}. "[Everyone has forgotten|They all forgot my birthday]," thought {h} and '
        "felt [very sad|a tear on {h.his} cheek]."
    )
    s.ask("What day was it?", "It was {day}.|It was {h}'s birthday.")
    s.ask("Why was {h} sad?", "{H} thought that everyone had forgotten {h.his} birthday.")
    aside(s, 0.25)
    s.say(
        "In the evening, {h} came home. [The house was dark.|It was strangely quiet.] "
        "{H.he} opened the door slowly. [Suddenly|Then], all the lights went on. "
        '"Surprise!" [shouted everyone|they all called]. There were {f}, {g} and all '
        "{h.his} friends! On the table was {cake}."
    )
    s.ask(
        "What happened in the evening?|What was the surprise?",
        "There was a surprise party.|{H.his} friends had made a party.",
    )
    s.ask("What was on the table?", "There was {cake}.")
    s.say(
        '"We did not forget," said {f} and laughed. "[We planned it for weeks|It was so '
        'hard to keep quiet]!" {F} gave {h.him} {gift}.'
    )
    s.ask("What did {f} give {h}?|What did {h} get?", "{F} gave {h.him} {gift}.|{H} got {gift}.")
    s.close(
        '[They sang and danced until late.|They ate and played games.] "This is the best '
        'birthday ever," said {h}.'
    )


def monster(s):
    s.hero(animals=0)
    s.put(
        beast=["dragon", "giant", "troll", "monster"],
        lair=[
            "in a cave in the mountains",
            "in a dark forest",
            "in an old castle",
            "on the top of a hill",
        ],
        rumor=[
            "it ate sheep",
            "it stole children",
            "it could burn a whole town",
            "it hated everyone",
        ],
        truth=[
            "it was only lonely",
            "it was only shy",
            "it had a thorn in its foot",
            "it had a bad tooth",
        ],
        job=[
            "lit the fire at the winter party",
            "carried heavy stones for the new bridge",
            "kept the wolves away",
            "told the best stories",
        ],
    )
    s.place("p", ["at the market"])
    s.tags.pop("place", None)
    s.tags["theme"] = s.dice.pick(
        ["{a beast}", "{a beast}", "a friendly {beast}", "{a beast} and a brave {h.noun}"]
    )
    s.open()
    s.say(
        "Near the town, {lair}, lived {a beast}. Everyone was afraid of it. People said "
        "that {rumor}. [At night, they heard it [howl|cry|roar].|Nobody had ever been "
        "there.] But {h} [wondered|thought]: has anyone ever talked to it?"
    )
    s.ask(
        "Who was everyone afraid of?|What lived near the town?",
        "Everyone was afraid of {a beast}.|{A beast} lived there.",
    )
    s.ask("Where did the {beast} live?", "It lived {lair}.")
    s.ask("What did people say about the {beast}?", "People said that {rumor}.")
    s.say(
        "So [one morning|one day], {h} packed [some bread and cheese|a warm blanket and "
        "some cake] and went to see. [{H.his} knees were shaking.|The way was long and "
        'steep.] There it sat, big and green. "[Who are you|What do you want]?" it '
        '[growled|asked]. "I am {h}. [I brought you something to eat|I wanted to say '
        'hello]."'
    )
    s.say(
        'The {beast} [began to cry|was so surprised that it sat down]. "Nobody has ever '
        '[been kind|talked] to me," it said. {H} understood: {truth}. '
        + {
            "it was only lonely": "They sat together and talked until the sun went down.",
            "it was only shy": "They sat together and talked until the sun went down.",
            "it had a thorn in its foot": "{H} pulled the thorn out, very gently.",
            "it had a bad tooth": "{H} pulled the tooth out, and at once it felt better.",
        }[s.words["truth"]]
    )
    s.ask(
        "Why was the {beast} sad?|What was the truth about the {beast}?",
        "{Truth}.|In truth, {truth}.",
    )
    s.close(
        "The next day, they came to the town together. [At first, people screamed.|At "
        'first, all doors were closed.] But {h} said, "This is my friend." From then on, '
        "the {beast} {job}, and nobody was afraid anymore."
    )


def chores(s):
    s.hero()
    s.friend()
    s.put(
        job=[
            "wash the dishes",
            "sweep the yard",
            "bring in the wood",
            "pick the apples",
            "clean the barn",
            "carry the water",
        ],
        fun=[
            "play by the river",
            "fly kites",
            "build a tree house",
            "go to the fair",
            "catch fireflies",
        ],
        way=[
            "sang a song with every step",
            "made a game of it",
            "did one half each",
            "worked side by side",
        ],
    )
    s.tags["theme"] = s.dice.pick(["hard work", "helping a friend", "helping at home"])
    s.open()
    s.say(
        '"[Come|Let us go]! We want to {fun}," called {f}. But {h} had to {job} first. '
        '"[Not before the work is done|First work, then play]," said {g}. {H} [looked at '
        'all the work and sighed|was sad]. "It will take all day!"'
    )
    s.ask("What did {h} have to do?|What was {h}'s job?", "{H} had to {job}.")
    s.ask("What did {f} want to do?", "{F} wanted to {fun}.")
    s.say(
        '{F} [thought for a moment|did not want to go alone]. "[If I help you, it will go '
        'faster|Two are faster than one]. Then we can go together." So they {way}. [They '
        "laughed so much that they forgot how hard it was.|Before they knew it, half was "
        "done.] [In an hour|Before noon], everything was finished."
    )
    s.ask("Who helped {h}?", "{F} helped {h.him}.|{H.his} friend {f} did.")
    s.ask("How did they do the work?", "They {way}.")
    s.close(
        '{G} could not believe it. "[Already done|So fast]? [Here are two apples for '
        'you|Take this cake with you]," {g.he} said. Then they went to {fun}[ until the '
        "stars came out|, and it was the best day of the week]."
    )
