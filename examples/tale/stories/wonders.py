"""Plots of puzzles, inventions and small wonders."""

import words as known


def mystery(s):
    s.hero()
    s.friend()
    thief = s.dice.pick(["magpie", "squirrel", "puppy", "kitten", "goat", "mouse"])
    s.put(
        gone=[
            "the cookies",
            "the red apples",
            "the silver spoon",
            "the blue ribbon",
            "the shiny button",
            "the cheese",
        ],
        where=["on the windowsill", "in the kitchen", "on the porch", "in the shed"],
        clue={
            "magpie": "a black and white feather",
            "squirrel": "a trail of nut shells",
            "puppy": "a row of muddy paw prints",
            "kitten": "soft gray hair",
            "goat": "a chewed piece of cloth",
            "mouse": "a line of tiny crumbs",
        }[thief],
        thief=thief,
        nest={
            "magpie": "in its nest",
            "squirrel": "in a hollow tree",
            "puppy": "under its blanket",
            "kitten": "behind the stove",
            "goat": "in the barn",
            "mouse": "behind the wall",
        }[thief],
    )
    s.tags["theme"] = s.dice.pick(["a mystery", "a thief", "two detectives", "a riddle to solve"])
    s.open()
    one = s.words["gone"].split()[-1] in ("spoon", "ribbon", "button", "cheese")
    s.put(
        was="was" if one else "were",
        it="it" if one else "they",
        them="it" if one else "them",
        day=known.DAYS,
    )
    s.say(
        '[One morning|On {day}|After breakfast], {g} [called|came in]. "[Someone took '
        '{gone}!|Who has taken {gone}?] {It} {was} {where} last night." {H} and {f} looked '
        'at each other. "[This is a case for us|We will find out|A real mystery]," said '
        "{h}."
    )
    s.ask("What was gone?|What did the thief take?", "Someone took {gone}.|{Gone}.")
    s.ask(
        "Who was the detective?|Who wanted to solve the mystery?", "{H} and {f} wanted to solve it."
    )
    s.say(
        'They looked at everything [very closely|through an old magnifying glass]. "[Look '
        'here|Come and see|I found something]!" said {f}. {Where}, there was {clue}. "[A '
        'clue|That is a clue]!" said {h}. "[We must follow it|Let us see where it leads]." '
        "[Step by step, they went on.|They went on as quietly as they could.]"
    )
    s.ask("What was the clue?|What did {f} find?", "The clue was {clue}.|{F} found {clue}.")
    s.say(
        "The trail led them to {a thief}. [And there, {nest}, {was} {gone}!|It sat there "
        'and looked at them. And {nest} {was} {gone}!] {H} [laughed|had to smile]. "[So it '
        'was you|You are the thief], little {thief}!" [It only wanted to play|It had only '
        "been hungry|It did not know that it was wrong]."
    )
    s.ask("Who was the thief?|Who took {gone}?", "It was {a thief}.|{A thief} took {gone}.")
    s.ask(
        "Where was the hiding place?|Where did they find {gone}?",
        "{It} {was} {nest}.|They found {gone} {nest}.",
    )
    s.close(
        '{G} [was amazed|laughed for a long time]. "[You are real detectives|Well done, '
        'you two]," {g.he} said. [From then on, everyone came to {h} and {f} when '
        "something was missing.|And the {thief} got a snack of its own every day.]"
    )


INVENTIONS = {
    "a machine that waters plants": (
        "it watered the cat, the chairs and {g}",
        "turned one wheel the other way",
        "the garden was green all summer",
    ),
    "a machine that makes toast": (
        "the toast flew out of the window",
        "made the spring softer",
        "there was warm toast every morning",
    ),
    "a wagon with a sail": (
        "it rolled into the pond",
        "added a brake",
        "they sailed down the road like a ship",
    ),
    "a bell that rings when it rains": (
        "it rang all night long",
        "put a little roof on it",
        "no wash got wet again",
    ),
    "a robot that sweeps": (
        "it swept the socks into the fireplace",
        "taught it to ask first",
        "the house was always clean",
    ),
    "a kite that carries letters": (
        "the letter landed in a tree",
        "made the tail longer",
        "letters came to the other side of the valley",
    ),
}


def invention(s):
    s.hero(animals=0.2)
    s.friend()
    made = s.dice.pick(sorted(INVENTIONS))
    wrong, fix, good = INVENTIONS[made]
    s.put(
        made=made,
        wrong=wrong,
        fix=fix,
        good=good,
        parts=[
            "old wheels and a spoon",
            "a box, a rope and three nails",
            "a clock and a bucket",
            "wire, wood and a lot of glue",
        ],
    )
    s.tags["theme"] = s.dice.pick(["an invention", "{made}", "a clever idea", "an inventor"])
    s.open()
    s.say(
        "{H} liked to build things. [One day|One rainy day|In the holidays], {h.he} had an "
        'idea. "[I will build|I am going to make] {made}," {h.he} said to {f}. They took '
        "{parts} and began. [They worked until it was dark.|They worked for three days.]"
    )
    s.ask(
        "What did {h} build?|What was the idea?", "{H} built {made}.|{H.he} wanted to build {made}."
    )
    s.ask("What did they use?|What did they take?", "They took {parts}.")
    s.say(
        "Then everyone came to see it. {H} pulled [the string|the handle], and... {wrong}! "
        '[Everyone laughed.|{G} shook {g.his} head.] {H} [turned red|wanted to hide]. "[It '
        'does not work|I am no inventor]," {h.he} said.'
    )
    s.ask("What went wrong?|What happened first?", "{Wrong}.|At first, {wrong}.")
    s.say(
        '"[No invention works the first time|You are almost there|Every mistake tells us '
        'something]," said {f}. They looked at it again, and {h} {fix}. [The next day, '
        "they tried again.|They held their breath.] [This time, it worked!|And it worked!]"
    )
    s.ask("How did {h} fix it?|What did {h} change?", "{H} {fix}.|{H.he} {fix}.")
    s.close(
        'From then on, {good}. "[What a clever {h.noun}|I am proud of you]," said {g}. '
        "[And {h} already had the next idea.|{H} and {f} shook hands.]"
    )


def snowman(s):
    s.hero(animals=0)
    s.friend()
    s.put(
        nose=["a carrot", "a red pepper", "a pine cone"],
        hat=["an old pot", "{g}'s hat", "a basket"],
        wish=[
            "to see the spring",
            "to hear a song",
            "to see the stars from the hill",
            "to have a friend",
        ],
        gave=["a scarf", "a pair of gloves", "a song", "a red heart of paper"],
    )
    s.tags["theme"] = s.dice.pick(["a snowman", "winter", "snow"])
    s.open()
    s.say(
        "[In the night, it had snowed.|It was the first snow of the winter.] Everything "
        "was white and quiet. {H} and {f} ran outside and built a snowman. He got {nose} "
        "for a nose and {hat} for a hat. [He looked very proud.|He looked so real that "
        "they said hello to him.]"
    )
    s.ask("What did they build?", "They built a snowman.")
    s.ask(
        "What was the nose of the snowman?|What nose did he get?",
        "His nose was {nose}.|He got {nose}.",
    )
    s.say(
        'That night, {h} heard a soft voice. It was the snowman! "[I am cold and alone|Do '
        'not be afraid]," he said. "I have only one wish: {wish}." {H} [thought about '
        "it|did not sleep all night]."
    )
    s.ask(
        "What did the snowman wish?|What was the wish of the snowman?",
        "He wished {wish}.|His wish was {wish}.",
    )
    s.say(
        {
            "to see the spring": "So {h} and {f} planted a small pot of flowers inside, "
            "and when the first one bloomed, they carried it out to him.",
            "to hear a song": "So {h} and {f} asked all the children, and they sang for him until the moon "
            "came up.",
            "to see the stars from the hill": "So {h} and {f} put him on a sled and pulled "
            "him up the hill. There were more stars than anyone could count.",
            "to have a friend": "So {h} and {f} built a second snowman next to him, with a smile of small "
            "stones.",
        }[s.words["wish"]]
    )
    s.close(
        '{H} also gave him {gave}. "Now I am happy," said the snowman. [When the sun came '
        "in spring, he melted with a smile.|And when the snow was gone, {gave} lay in the "
        'grass, and {h} knew that he would come back.] "See you next winter," said {h}.'
        if s.words["gave"] not in ("a song",)
        else '"Now I am happy," said the snowman. When the sun came in spring, he melted with a '
        'smile. "See you next winter," said {h}.'
    )


def concert(s):
    s.hero()
    s.friend()
    s.put(
        plays=["the drum", "the flute", "the violin", "the trumpet", "the piano"],
        event=[
            "the summer party",
            "the school concert",
            "the village fair",
            "the birthday of the mayor",
        ],
        lost=[
            "forgot every note",
            "could not move a finger",
            "played one wrong note after the other",
        ],
        help=[
            "hummed the first notes",
            "smiled and nodded",
            "began to clap in time",
            "came up and sang along",
        ],
    )
    s.tags["theme"] = s.dice.pick(["music", "a concert", "playing {plays}"])
    s.open()
    s.say(
        "{H} played {plays}. [Every evening, {h.he} practiced in the barn.|{F} said that "
        "it was the best sound in the world.] Soon it was time for {event}, and {h} was "
        'going to play in front of everyone. "[What if I make a mistake|What if they '
        'laugh]?" said {h}. "[Just play for me|Then you go on]," said {f}.'
    )
    s.ask(
        "What did {h} play?|Which instrument did {h} play?",
        "{H} played {plays}.|{H.he} played {plays}.",
    )
    s.ask("Where did {h} play?|What was the event?", "{H} played at {event}.")
    s.say(
        "The [big day|evening] came. {H} stepped out. So many eyes! And then {h} {lost}. "
        "[It was very quiet.|Somebody coughed.] But in the first row, {f} {help}. {H} took "
        "a deep breath and began again. [And now it was as easy as in the barn.|Note by "
        "note, the song came back.]"
    )
    s.ask("What went wrong?|What happened to {h}?", "{H} {lost}.")
    s.ask("How did {f} help?|What did {f} do?", "{F} {help}.")
    s.close(
        "When it was over, [everyone clapped and called for more|the people stood up and "
        'cheered]. "[You played for me|I heard every note]," said {f}. "[With you in the '
        'first row, I can do anything|I could not have done it without you]," said {h}.'
    )


def bridge(s):
    s.hero()
    s.friend()
    s.put(
        cause=[
            "The storm had broken the bridge",
            "The river had carried the bridge away",
            "The old bridge had fallen down",
        ],
        need=[
            "could not get to school",
            "could not visit each other",
            "could not go to the market",
        ],
        pride=[
            '"We do not need them," said some.',
            '"The others should build it," said each side.',
            '"It is not our bridge," they said.',
        ],
        stuff=["old boards", "ropes", "flat stones", "logs"],
    )
    s.tags["theme"] = s.dice.pick(
        ["a bridge", "working together", "two villages", "a broken bridge"]
    )
    s.open()
    s.say(
        "{cause}, and now the friends on both sides {need}. [Everyone talked about it, but "
        "nobody did anything.|Days went by.] {pride} {H} stood on one side of the water, "
        "and {f} on the other. They waved, but [it was too far to talk|the water was too "
        "loud]."
    )
    s.ask("What was broken?|What was the problem?", "The bridge was gone.|{cause}.")
    s.ask("Where was {f}?", "{F} was on the other side of the water.")
    s.say(
        "[The next morning|Then], {h} began to carry {stuff} to the river. On the other "
        'side, {f} did the same. [They worked all day.|It was hard work.] "[That is too '
        'much for two|You are too small for that]," said the people. But [they did not '
        "stop|they went on]. [First one came to help, then ten, then all.|In the evening, "
        "{g} came with a hammer, and then all the others came.]"
    )
    s.ask("What did {h} carry?|What did they use?", "{H} carried {stuff}.|They used {stuff}.")
    s.close(
        "After [a week|nine days|six days], {h} and {f} met in the middle. They [shook "
        "hands|hugged], and everyone cheered. [The bridge is still there today.|There was "
        "a party on the bridge that night, with lamps on both sides.]"
    )


def moon(s):
    s.animal("h", s.dice.pick(["mouse", "frog", "hedgehog", "duck", "owl", "rabbit", "fox"]))
    s.words["h.home"] = s.dice.pick(
        ["a meadow by a quiet pond", "the reeds of a pond", "a forest with a little pond"]
    )
    s.tags.update(kind=s.words["h.noun"], name=s.words["h"])
    s.animal("f", s.dice.pick(["turtle", "owl", "squirrel", "cat"]))
    s.put(
        try1=[
            "jumped into the water",
            "threw a rope",
            "used a basket",
            "reached out with a long stick",
        ],
        result=["it broke into a thousand pieces", "it danced away", "it slipped away"],
    )
    s.tags["theme"] = s.dice.pick(["the moon", "the moon in the pond", "a wish for the moon"])
    s.open()
    s.say(
        "One night, {h} looked into the pond and saw the moon in it, round and bright. "
        '"[The moon has fallen into the water|Someone must save the moon]!" {h.he} cried. '
        '{H.he} ran to {f} the {f.noun}. "[Come quickly|Wake up]! We must get it out!"'
    )
    s.ask("What did {h} see in the pond?", "{H} saw the moon in the pond.|{H.he} saw the moon.")
    s.ask("Who did {h} wake?|Who came to help?", "{F} the {f.noun}.|It was {f} the {f.noun}.")
    s.say(
        "{H} {try1}, but {result}. [{H.he} tried again and again.|After a while, the water "
        'was still, and there it was again.] "[I cannot catch it|It does not want to '
        'come]," said {h}. {F} [smiled|looked up]. "[Look up, {h}|Now look up|Look at the '
        'sky]," said {f}.'
    )
    s.ask("What did {h} do?|How did {h} try to get the moon?", "{H} {try1}.")
    s.say(
        '{H} looked up, and there was the moon, safe in the sky. "[Then who is in the '
        'water|So there are two]?" {h.he} asked. "The water is a mirror," said {f}. "[It '
        'shows us the sky|It only shows what is above]." {H} [laughed at {h.self}|was '
        "quiet for a long time]."
    )
    s.ask(
        "What was in the water?|Why could {h} not catch the moon?",
        "The water was only a mirror of the sky.",
    )
    s.close(
        '[They sat by the pond until morning and watched both moons.|"Two moons are better '
        'than one," said {h}.]'
    )


def baby(s):
    s.hero(animals=0)
    sibling, he = s.dice.pick([("sister", "she"), ("brother", "he")])
    name = s._name(known.GIRLS if he == "she" else known.BOYS)
    s._put("f", name, he, sibling)
    s.put(
        jealous=[
            "everyone only looked at the baby",
            "nobody had time to play",
            "everyone whispered all day long",
        ],
        trick=[
            "made a funny face",
            "sang a silly song",
            "showed the teddy bear",
            "danced like a duck",
        ],
    )
    s.tags.update(
        friend=name,
        theme=s.dice.pick(["a new baby", "a baby {sib}".replace("{sib}", sibling), "a family"]),
    )
    s.open()
    s.say(
        "[One day|In spring], {h} got a baby {f.noun} named {f}. At first, {h} was happy. "
        'But then {jealous}. "[Nobody needs me anymore|I wish that we had a puppy '
        'instead]," thought {h} and [went to {h.his} room|sat alone under the table].'
    )
    s.ask(
        "What was the baby's name?|What was the name of the baby?", "The baby was named {f}.|{F}."
    )
    s.ask("Why was {h} sad?", "{Jealous}.|{H} thought that nobody needed {h.him}.")
    s.say(
        "[One evening|Then, one night], {f} cried and cried. {G} tried everything: [milk, "
        "songs and walks|a bottle, a blanket and a song]. Nothing helped. {H} came closer "
        "and {trick}. {F} stopped crying, looked at {h} with big eyes, and [laughed|smiled "
        "for the first time]."
    )
    s.ask("What did {h} do?|How did {h} help?", "{H} {trick}.|{H.he} {trick}.")
    s.close(
        '"[You are the only one who can do that|See? {F} needs you]," said {g}. {H} [felt '
        'very big and very proud|held the tiny hand]. "I am your big {big}," {h.he} '
        'whispered. "I will teach you everything."'.replace(
            "{big}", "sister" if s.words["h.he"] == "she" else "brother"
        )
    )


def star(s):
    s.hero()
    s.place("p", ["on the hill", "in the meadow", "by the lake", "in the garden"])
    s.put(
        size=["as small as a cherry", "as big as an apple", "no bigger than a button"],
        why=[
            "it had leaned out too far to see the earth",
            "it had danced too wildly",
            "it had followed a bird",
        ],
        way=[
            "a kite with a very long string",
            "the highest branch of the oldest tree",
            "a balloon",
            "the back of a wild goose",
        ],
    )
    s.tags["theme"] = s.dice.pick(["a fallen star", "a star", "the night sky"])
    s.open()
    s.say(
        "One night, a light fell from the sky. {H} ran {p.to} to look for it. There, "
        '{p.spot}, lay a little star. It was {size}, and it was crying. "[I fell down|I '
        'want to go home]," it said. It had fallen because {why}.'
    )
    s.ask(
        "What did {h} find?|What fell from the sky?",
        "{H} found a little star.|It was a little star.",
    )
    s.ask("Where did the star lie?|Where was the star?", "It lay {p.spot}.|It was {p.spot}.")
    s.ask("Why did the star fall?", "It fell because {why}.")
    s.say(
        "{H} took it home in {h.his} [hands|hat|scarf]. [{G} made a small bed of cotton "
        "for it.|It shone so brightly that nobody needed a lamp.] But [day by day, its "
        'light grew weaker|it grew paler every day]. "It has to go back," said {g}. {H} '
        "was sad, but {h.he} [understood|knew that it was true]."
    )
    s.say(
        "[The next night|On a clear night], they sent it up with {way}. [Higher and higher "
        "it went.|It went up, and up, and up.] Then [a new light shone in the sky|one star "
        "blinked three times]."
    )
    s.ask("How did the star get back?|What brought the star home?", "They sent it up with {way}.")
    s.close(
        "[Every night, {h} waved to it.|Since then, one star shines a little brighter over "
        "{h}'s house.] [And the star always blinked back.|]"
    )
