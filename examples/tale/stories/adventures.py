"""More plots: journeys, magic, contests and quiet days."""

import words as known

ASIDES = (
    'On the way, {h.he} met an old snail. "[Where are you going so fast|Why are you in '
    'such a hurry]?" asked the snail. '
    '"[I cannot stop now|I have no time today]," said {h}. "Those who go slowly see more," '
    "said the snail.",
    "[The sun was shining, and a warm wind blew.|The birds were singing in the "
    "trees.|White clouds moved over the hills.] {H} [hummed a little song|jumped over "
    "every puddle|counted the fence posts] as {h.he} went along.",
    "[By the path|Under a tree], {h.he} saw {a berry} bush. {H} ate a few {berries} and "
    "kept some for later. They tasted [sweet|like summer].",
    'An old [woman|man] sat by the road. "[Good morning|Good day|Hello], little one. Do '
    'you have some bread for me?" {H} shared what {h.he} had. "Your kindness will come '
    'back to you," the old one said.',
    "A [butterfly|bee|little bird] flew around {h.his} head [three times|in a circle], as "
    "if it wanted to say something. {H} laughed and waved to it.",
    "[Soon {h.he} came to|The path led to] a narrow bridge. [The wood creaked|The water "
    "below was loud], but {h} walked over it [step by step|without looking down].",
)


def aside(s, chance=0.4):
    if s.dice.chance(chance):
        berry = s.dice.pick(["blackberry", "raspberry", "blueberry", "strawberry"])
        s.put(berry=berry, berries=berry[:-1] + "ies")
        s.say(s.dice.pick(ASIDES))


def treasure(s):
    s.hero()
    s.friend()
    s.place("p", ["in the forest", "on the hill", "at the beach", "in the meadow", "by the river"])
    s.put(
        found=[
            "in an old book",
            "under a loose board",
            "in a bottle",
            "in the pocket of an old coat",
        ],
        clue=[
            "Go where the water sings",
            "Follow the setting sun",
            "Walk ten steps from the crooked tree",
            "Look where the owl sleeps",
        ],
        gold=[
            "old coins",
            "shining stones",
            "a golden bell",
            "a little silver flute",
            "a letter and a small ring",
            "a book of stories",
        ],
        chest=["a small box", "an iron chest", "a clay pot", "a wooden box"],
    )
    s.tags["theme"] = s.dice.pick(["a treasure", "a treasure map", "an old map", "{gold}"])
    s.open()
    s.say(
        "One [day|morning|rainy afternoon], {h} found [an old map|a map with a red cross] "
        "{found}. [The paper was yellow and thin.|It smelled of dust.] On it was written: "
        '"{clue}." {H} [ran to {f}|showed it to {f}]. "[A treasure map|It must be a '
        'treasure]!" said {f}. "Let us go {p.to}!"'
    )
    s.ask("What did {h} find?", "{H} found an old map.|{H.he} found a map {found}.")
    s.ask("Where was the map?|Where did {h} find the map?", "It was {found}.|{H} found it {found}.")
    s.ask("What was written on the map?|What did the map say?", 'It said: "{clue}."')
    aside(s)
    s.say(
        "[They walked for a long time.|The way was not easy.] They passed {p.sight} and "
        'looked {p.spot}. [Nothing!|There was only sand and stones.] "[Maybe there is no '
        'treasure|I am tired]," said {f}. "[Let us read it again|Do not give up now]," '
        'said {h}. "{clue}..." [Then {h.his} eyes grew big.|Suddenly {h.he} understood.]'
    )
    s.put(were="was" if s.words["gold"].startswith("a ") else "were")
    s.say(
        '"[I know|Now I see|Of course]!" {h.he} called. They dug {p.spot2}. [Soon the '
        "shovel hit something hard.|Deeper and deeper they dug.] It was {chest}! Inside "
        "{were} {gold}."
    )
    s.ask(
        "What was in the treasure?|What was inside?|What was the treasure?",
        "There {were} {gold} inside.|They found {gold}.",
    )
    s.ask(
        "Where was the treasure?|Where did they dig?", "It was {p.spot2}.|They found it {p.spot2}."
    )
    s.close(
        "[They shared everything.|Each of them got a half.|They showed it to {g}, who "
        'could not believe it.] "[But the best part was the search|The real treasure is a '
        'friend like you|What an adventure]," said {h}.'
    )


FAIRIES = {
    "a tiny fairy": "the fairy",
    "an old frog with a crown": "the frog",
    "a golden fish": "the fish",
    "a little wizard": "the wizard",
    "a talking owl": "the owl",
}
WISHES = {
    "that everything was made of candy": (
        "the bed was sticky and the soup was too sweet",
        "Too much of a good thing is not good",
    ),
    "to be as big as a house": (
        "{h.he} could not go through any door",
        "It is good to be just as big as you are",
    ),
    "that it was always day": (
        "nobody could sleep and everyone was tired",
        "The night is good, too",
    ),
    "to be invisible": (
        "nobody saw {h.him} and nobody played with {h.him}",
        "It is nice to be seen by those who love you",
    ),
    "that {h.he} could fly": (
        "the wind carried {h.him} far away from home",
        "The ground is a fine place to stand",
    ),
    "for a mountain of toys": (
        "there was no room left to play",
        "A few toys and a good friend are enough",
    ),
    "that all animals could talk": (
        "they all talked at once, day and night",
        "Sometimes quiet is a gift",
    ),
    "that it would snow in summer": (
        "the flowers froze and the bees went to sleep",
        "Each season has its time",
    ),
}


def wish(s):
    s.hero()
    s.place("p", known.OUTSIDE)
    wish = s.dice.pick(sorted(WISHES))
    s.put(
        fairy=sorted(FAIRIES),
        wish=wish,
        mine=wish.replace("{h.he}", "I"),
        trouble=WISHES[wish][0],
        moral=WISHES[wish][1],
        stuck=[
            "its foot was caught in a root",
            "it was caught in a net",
            "it could not get out of a jar",
            "it was caught under a stone",
        ],
    )
    s.words["the fairy"] = FAIRIES[s.words["fairy"]]
    s.tags["theme"] = s.dice.pick(["a wish", "magic", "{fairy}", "a foolish wish"])
    s.open()
    s.say(
        "One [day|evening|quiet morning], {h} was {p}. Near {p.sight}, {h.he} heard a "
        'small voice. "Help me, please!" It was {fairy}, and {stuck}. {H} [helped at '
        'once|was very careful and helped]. "Thank you," said {the fairy}. "Now you have '
        'one wish."'
    )
    s.ask("Who did {h} meet?|Who gave {h} a wish?", "{H} met {fairy}.|It was {fairy}.")
    s.ask("Why did {the fairy} need help?", "It needed help because {stuck}.")
    s.say(
        '{H} [did not think long|thought for a moment]. "I wish {mine}!" {h.he} said. '
        "[There was a flash of light|There was a sound like a bell|{The fairy} blinked "
        "twice], and the wish came true.",
        "[At first, it was wonderful.|For one hour, {h} was happy.] [But soon|But the next "
        'day], {trouble}. ["This is not what I wanted," said {h}.|{H} became sad.]',
    )
    s.ask("What did {h} wish for?|What was the wish?", "{H} wished {wish}.")
    s.ask("What went wrong?|Why was {h} sad?", "After the wish, {trouble}.|{Trouble}.")
    s.say(
        "So {h.he} [ran|went] back and [looked for {the fairy}|called for {the fairy}]. "
        '"Please make everything as it was before!" {The fairy} [laughed '
        'softly|smiled|nodded]. "[You have learned something|I thought you would come '
        'back]." And [everything was as before|in a moment, all was as it had been].'
    )
    s.close('"{Moral}," {h} told {g} that evening.')


WANTS = {
    "mouse": ("big", "so small", "went through a tiny hole and got the key"),
    "turtle": ("fast", "so slow", "carried everyone safely over the water"),
    "frog": ("beautiful", "so green and plain", "jumped high and rang the bell"),
    "owl": ("awake in the day", "awake only at night", "saw the way in the dark"),
    "hedgehog": ("soft", "so spiky", "rolled into a ball and made the wolf run away"),
    "duck": ("able to sing", "so loud", "quacked so loudly that everyone woke up"),
    "squirrel": ("strong", "so light", "ran along the thinnest branch to the nest"),
    "pig": ("clean and elegant", "so dirty", "smelled the way home through the fog"),
    "snail": ("quick", "so slow", "saw the tiny track that all others had missed"),
    "bird": ("as strong as a bear", "so weak", "flew over the trees and called for help"),
}
DANGERS = (
    "the door of the barn was locked, and everyone was inside",
    "the water rose and rose around the little island",
    "a storm came, and the young ones were lost",
    "a hungry wolf came to the valley",
    "thick fog covered the whole valley",
)
FITS = {
    "mouse": 0,
    "turtle": 1,
    "frog": 0,
    "owl": 2,
    "hedgehog": 3,
    "duck": 3,
    "squirrel": 2,
    "pig": 4,
    "snail": 4,
    "bird": 1,
}


def different(s):
    kind = s.dice.pick(sorted(WANTS))
    s.animal("h", kind)
    s.words["h.home"] = s.dice.pick(
        ["a green valley", "the middle of the forest", "a meadow by the river", "the old garden"]
    )
    s.tags.update(kind=kind, name=s.words["h"])
    s.animal("f", s.dice.pick([a for a in known.HEROES if a != kind]))
    s.put(want=WANTS[kind][0], why=WANTS[kind][1], deed=WANTS[kind][2], danger=DANGERS[FITS[kind]])
    s.tags["theme"] = s.dice.pick(
        ["being different", "being yourself", "{a h.noun} who wanted to be {want}"]
    )
    s.open()
    s.say(
        'But {h} was not happy. "I am {why}," {h.he} [often |]said. "I want to be {want}." '
        'The other animals [laughed|did not understand]. Only {f} the {f.noun} said, "[I '
        'like you as you are|Every animal is good at something|One day you will see]."'
    )
    s.ask("What did {h} want to be?|Why was {h} not happy?", "{H} wanted to be {want}.")
    s.ask("Who was {h}'s friend?", "{F} the {f.noun} was {h.his} friend.|{F}.")
    s.say(
        "[One night|One day|Then, in autumn], {danger}. [Everyone was afraid|Nobody knew "
        'what to do]. ["What shall we do?" they cried.|Even the strongest animals could '
        "not help.] "
        'Then {h} [had an idea|stepped forward]. "[Let me try|I can help]," {h.he} said. '
        "And {h.he} {deed}. [Everyone was saved!|So all were safe!]"
    )
    s.ask("What was the danger?|What happened?", "{Danger}.")
    s.ask("What did {h} do?|How did {h} help?", "{H} {deed}.|{H.he} {deed}.")
    s.close(
        '"[Thank you|Hurray for {h}]," they all said. "[You are just right as you are|We '
        'need you just as you are]." [{H} smiled. {H.he} did not want to be {want} '
        "anymore.|From then on, {h} was glad to be {a h.noun}.]"
    )


def newcomer(s):
    s.hero()
    s.friend()
    s.place("p", ["at school", "in the park", "in the meadow", "by the lake", "in the garden"])
    s.put(
        hobby=[
            "drawing animals",
            "building towers",
            "telling stories",
            "collecting stones",
            "making paper boats",
            "singing songs",
        ],
        gift=[
            "a smooth stone",
            "a piece of cake",
            "a paper star",
            "half of an apple",
            "a yellow flower",
        ],
    )
    s.tags["theme"] = s.dice.pick(["a new friend", "friendship", "being new", "being lonely"])
    s.open()
    s.say(
        "{H} was new in [town|the neighborhood|the valley]. {H.he} did not know anyone, "
        "and {h.he} was [lonely|shy|a little sad]. [One day|On Monday], {h} sat alone {p}, "
        "next to {p.sight}. [The others were playing and laughing.|Nobody looked at "
        "{h.him}.]"
    )
    s.ask("Why was {h} sad?|Why was {h} lonely?", "{H} was new and did not know anyone.")
    s.ask("Where did {h} sit?", "{H} sat alone {p}.|{H.he} sat {p}.")
    s.say(
        'Then {f} came over. "[Hello|Hi]! [I am {f}|My name is {f}]. What is your name?" '
        '"{H}," {h.he} said [quietly|very softly]. "[Do you want to play with us|What do '
        'you like to do]?" "I like {hobby}," said {h}. "I like that, too!" said {f} and '
        "gave {h.him} {gift}."
    )
    s.ask("Who came to {h}?|Who was friendly to {h}?", "{F} came.|It was {f}.")
    s.ask("What did {h} like to do?", "{H} liked {hobby}.")
    s.ask("What did {f} give {h}?", "{F} gave {h} {gift}.|{H} got {gift}.")
    s.say(
        "They spent the whole [afternoon|day] {hobby}. [Soon others came, too.|Time flew "
        "by.] [{H} was not shy anymore|{H} laughed for the first time in weeks]."
    )
    s.close(
        '"Will you come again tomorrow?" asked {f}. "Yes!" said {h}. [At home, {h} told '
        '{g}: "I have a friend now."|{H} ran home to tell {g}.]'
    )


def stuck(s):
    s.hero()
    s.friend()
    s.thing("o", ["kite", "ball", "hat", "scarf", "toy boat"])
    where = {
        "kite": "in a tall tree",
        "ball": "on the roof",
        "hat": "on a high branch",
        "scarf": "on a high branch",
        "toy boat": "in the middle of the pond",
    }[s.words["o"]]
    s.put(
        where=where,
        first=[
            "threw a stick at it",
            "jumped as high as {h.he} could",
            "shouted at the wind",
            "pulled with a long rope",
        ],
        second=["stood on {f}'s shoulders", "stood on an old box", "shook with all {h.his} might"],
        tool=["a long ladder", "a fishing net on a pole", "a very long broom"],
    )
    s.tags["theme"] = s.dice.pick(["{a o} {where}", "working together", "a good idea"])
    s.open()
    s.say(
        "[It was a windy day.|One day, the wind was strong.] {H} and {f} were playing with "
        "{a o.full}. [Suddenly|All at once], a [strong wind|gust of wind] took it, and the "
        '{o} landed {where}. "[Oh no|Now what]!" said {f}.'
    )
    s.ask("Where did the {o} land?|Where was the {o}?", "The {o} was {where}.|It landed {where}.")
    s.ask("Who was with {h}?", "{F} was with {h.him}.|{H.his} friend {f}.")
    s.say(
        "First, {h} {first}. [It did not help.|The {o} did not move.] Then {h.he} "
        "{second}, but [it was still too far|{h.he} could not reach it]. [They sat down "
        'and thought.|"We need help," said {f}.]'
    )
    s.say(
        'Just then, {g} came by with {tool}. "[May we use that|Can you help us], please?" '
        'asked {h}. [{G} nodded.|"Of course," said {g}.] [Together, they|With it, they] '
        "got the {o} down."
        if "pond" not in where
        else 'Just then, {g} came by with {tool}. "[May we use that|Can you help us], please?" '
        'asked {h}. "Of course," said {g}. With it, they pulled the {o} to the shore.'
    )
    s.ask(
        "How did they get the {o} back?|What helped them?",
        "{G} came with {tool}.|They used {tool}.",
    )
    s.close(
        '"[Thank you, {g}|Hurray]!" they shouted. [They played until it got dark, but far '
        'away from the trees.|"Next time, we will be more careful," said {h}.|{H} learned '
        "that it is good to ask for help.]"
    )


def seed(s):
    s.hero()
    s.friend()
    s.put(
        plant=["sunflower", "pumpkin", "tomato", "rose", "bean", "apple tree", "strawberry"],
        pot=["in a pot", "behind the house", "next to the gate", "under the window"],
        days=["two weeks", "ten days", "a whole month", "twenty days"],
    )
    s.tags["theme"] = s.dice.pick(["a seed", "a garden", "being patient", "{a plant}"])
    s.open()
    s.say(
        'In [spring|April|May], {g} gave {h} a tiny seed. "[What will it be|What is '
        'this]?" asked {h}. "[Wait and see|That is a secret]," said {g}. {H} planted it '
        "{pot} and gave it water."
    )
    s.ask("Who gave {h} the seed?", "{G} gave {h.him} the seed.|It was from {g}.")
    s.ask("Where did {h} plant the seed?", "{H} planted it {pot}.")
    s.say(
        'Every morning, {h} ran to look. [Nothing!|There was only brown earth.] "[It is '
        'broken|It does not work|Why is it so slow]," said {h}. {F} looked, too. "[You '
        "must be patient|Good things need time|It is growing under the ground, where we "
        'cannot see it]," said {f}.'
    )
    s.ask("What did {f} say?", "{F} said that {h} must be patient.|{F} told {h} to wait.")
    s.say(
        "So {h} waited. {H.he} [watered it|sang to it|pulled out the weeds] every day. "
        "After {days}, [a tiny green leaf|something green] [came out of the ground|looked "
        'at the sun]. ["Look!" shouted {h}.|{H} danced around it.] It grew and grew, and '
        "in summer it was {a plant}."
    )
    s.ask(
        "What did the seed become?|What grew from the seed?",
        "It became {a plant}.|{A plant} grew from it.",
    )
    s.close(
        '["I am glad that I waited," said {h}.|{H} gave the first one to {f}.|{H} and {f} '
        "sat next to it and were happy.] [{H} kept one seed for the next spring.|]"
    )


def race(s):
    s.animal("h", s.dice.pick(["turtle", "snail", "hedgehog", "duck", "mouse", "frog"]))
    s.words["h.home"] = s.dice.pick(
        ["a green valley", "a meadow by the river", "the middle of the forest"]
    )
    s.tags.update(kind=s.words["h.noun"], name=s.words["h"])
    s.animal("f", s.dice.pick(["rabbit", "fox", "squirrel", "dog", "cat"]))
    s.put(
        goal=["the old oak", "the bridge", "the windmill", "the top of the hill"],
        prize=["a big cake", "a golden apple", "a basket of berries", "a crown of flowers"],
        slip=[
            "lay down to sleep in the shade",
            "stopped to eat berries",
            "took a wrong path to show off",
            "stopped to laugh and talk with everyone",
        ],
    )
    s.tags["theme"] = s.dice.pick(["a race", "never giving up", "{a h.noun} and {a f.noun}"])
    s.open()
    s.say(
        "[In the same place|Not far away] lived {f} the {f.noun}, who was very fast and "
        'very proud. "[Nobody is as fast as I am|I always win]," said {f}. "You are so '
        'slow, {h}!" "[Let us have a race|Then let us race]," said {h}. "To {goal}." The '
        "winner would get {prize}."
    )
    s.ask("Who was proud?|Who raced against {h}?", "{F} the {f.noun}.|It was {f} the {f.noun}.")
    s.ask("Where did they race to?", "They raced to {goal}.")
    s.ask("What was the prize?", "The prize was {prize}.|{Prize}.")
    s.say(
        "[One, two, three, go!|All the animals came to watch.] {F} ran and was soon far "
        'ahead. [{H} went on, step by step.|{H} did not stop.] "[I have so much time|This '
        'is too easy]," thought {f} and {slip}.'
    )
    s.say(
        "{H} [passed {f.him} quietly|went on and on]. When {f} [looked up|saw it], it was "
        "too late. {F.he} ran as fast as {f.he} could, but {h} was already at {goal}!"
    )
    s.ask("Who won the race?|Who won?", "{H} won the race.|{H} the {h.noun} won.")
    s.ask("Why did {f} lose?", "{F} lost because {f.he} {slip}.")
    s.close(
        '[{F} was ashamed. "I should not have laughed at you," {f.he} said.|"Well done," '
        "said {f} quietly.] {H} [smiled and shared {prize} with everyone|shared {prize} "
        "with {f}, and they became friends]."
    )
