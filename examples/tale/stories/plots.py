"""The first plots: each fills a scene with paragraphs that follow from one another."""

import words as known


def lost(s):
    s.hero()
    s.friend()
    s.thing()
    s.place()
    s.tags["theme"] = s.dice.pick(["a lost {o}", "losing a {o}", "looking for a {o}"])
    s.open()
    s.say(
        "[{H} had {a o.full}.|{H}'s favorite [toy|thing] was {a o.full}.|For {h.his} "
        "birthday, {h} got {a o.full} from {g}.] "
        "[{H.he} loved to {o.use}.|Every day, {h.he} would {o.use}.|{H.he} took it everywhere.]"
    )
    s.say(
        "[One [morning|day|afternoon|Sunday], {h} went to play {p}. There was {p.sight} "
        "and {p.sight2}.|One [sunny|windy|cloudy] day, {h} was {p}. {H.he} played next to "
        "{p.sight} for a long time.] "
        "[But when {h.he} wanted to go home, the {o} was gone|Then {h.he} looked down, and "
        "the {o} was not there|When it was time to go, {h} could not find the {o}]. "
        '["Oh no! Where is my {o}?" {h.he} [cried|said].|"My {o} is gone!" said {h}. '
        "{H.his} eyes filled with tears.]"
    )
    s.ask("What did {h} lose?|What was gone?", "{H} lost {a o.full}.|{H.he} lost {h.his} {o.full}.")
    s.ask("Where did {h} lose the {o}?|Where was {h} playing?", "{H} was {p}.|It was {p}.")
    s.ask("What color was the {o}?", "The {o} was {o.color}.|It was {o.color}.")
    s.say(
        '{F} heard {h} and came [running|over|to help]. "[Why are you sad|What is '
        'wrong|What happened]?" [asked {f}|{f} asked]. '
        '"I lost my {o}," said {h}. "[Do not worry|Do not cry|Do not be sad], [I will help '
        'you|we will find it together|we can look for it]," said {f}.',
        "[They|The two friends] looked {p.spot}. [It was not there|There was no {o}|They "
        "found only [a stick|an old shoe|some dust|a worm]]. "
        "Then they looked {p.spot2}. [It was not there either|Still no {o}|Nothing].",
    )
    s.ask("Who helped {h}?", "{F} helped {h.him}.|{H.his} friend {f} did.")
    s.put(finder=["{f}", "{h}"])
    s.say(
        "[At last|In the end|Then], {finder} looked {p.spot3}. [Something {o.color} was "
        "shining there|There was something {o.color}]. "
        '["I found it!"|"Here it is!"|"Look!"] [said|shouted|called] {finder}. It was the {o}!'
    )
    s.ask(
        "Where was the {o}?|Where did they find the {o}?",
        "It was {p.spot3}.|They found it {p.spot3}.",
    )
    s.close(
        '[{H} hugged {f}.|{H} jumped for joy.|{H} laughed and clapped.] "[Thank you|Thank '
        'you so much], {f}! You are a [good|true|great] friend," {h.he} said. '
        "[Then they played with the {o} together until the sun went down.|From then on, "
        "{h} took good care of the {o}.|On the way home, they took turns with the {o}.|{H} "
        "let {f} hold the {o} all the way home.]"
    )


def rescue(s):
    s.hero(animals=0)
    s.place(among=known.OUTSIDE)
    s.animal("x", s.dice.pick(known.FOUND))
    s.put(
        trouble=[
            "its leg was hurt",
            "it was cold and wet",
            "it was all alone",
            "it was stuck in a bush",
            "it was hungry",
        ],
        box=["a small box", "a basket", "{h.his} hat", "{h.his} scarf"],
    )
    s.tags["theme"] = s.dice.pick(
        ["a lost {x.noun}", "helping {a x.noun}", "a new pet", "being kind to animals"]
    )
    s.words["x.food"] = {
        "puppy": "warm milk",
        "kitten": "warm milk",
        "bird": "seeds",
        "duckling": "bread",
        "rabbit": "a carrot",
        "hedgehog": "a bowl of water",
        "squirrel": "nuts",
        "turtle": "leaves",
        "lamb": "milk from a bottle",
        "owl": "some meat",
    }[s.words["x.noun"]]
    s.open()
    s.say(
        "One [day|morning|rainy day|evening], {h} [walked {p.to}|took a walk {p.to}|went "
        "{p.to} with {g}]. [Near {p.sight}|Not far from {p.sight}], {h.he} heard a "
        "[soft|small|sad|strange] sound. "
        "[{H.he} looked around.|{H.he} stopped and listened.] [There, {p.spot}, "
        "sat|{P.spot}, there was] a little {x.noun}. [The poor thing was shaking, because "
        "{trouble}|It could not go home, because {trouble}|It looked sad, because "
        "{trouble}]."
    )
    s.ask("What did {h} find?", "{H} found a little {x.noun}.|{H.he} found {a x.noun}.")
    s.ask(
        "Where did {h} find the {x.noun}?|Where was the {x.noun}?",
        "It was {p.spot}.|{H} found it {p}, {p.spot}.",
    )
    s.ask(
        "Why was the {x.noun} sad?|What was wrong with the {x.noun}?",
        "{Trouble}.|It was sad because {trouble}.",
    )
    s.say(
        '"[Do not be afraid|Do not worry|Poor little one], [I will help you|I will take '
        'care of you|you are safe now]," {h} [said|whispered]. {H.he} put the {x.noun} '
        "into {box} and [carried it home|took it home].",
        '{G} [looked at the {x.noun}|smiled|was surprised]. "[It needs|This little one '
        "needs] [food and rest|a warm place|something to eat]. [We can keep it until it is "
        'well|You may look after it]," {g.he} said. '
        "{H} gave it {x.food} and made a [soft|warm] bed of [straw|an old blanket|a towel] for it.",
    )
    s.ask(
        "What did {h} give the {x.noun}?|What did the {x.noun} eat?",
        "{H} gave it {x.food}.|It got {x.food}.",
    )
    s.put(days=["three", "four", "five", "seven", "ten"])
    s.say(
        "Every day, {h} [fed the {x.noun} and talked to it|looked after the {x.noun}|sat "
        "next to the {x.noun} and sang to it]. [Soon it was strong again|After {days} "
        "days, it was well|Day by day, it grew stronger]. "
        "{H} named it {x}."
    )
    s.ask("What was the name of the {x.noun}?", "The {x.noun} was named {x}.|It was named {x}.")
    if s.dice.chance(0.5):
        s.close(
            "Then it was time to say goodbye. {H} [took {x} back {p.to}|opened the door]. "
            "[{X} looked back once and then ran into the grass.|{X} looked at {h} for a "
            "long time, and then it left.] {H} was a little sad, [but {h.he} knew that it "
            "was right|but {h.he} knew that {x} was happy]. "
            "[The next day, {x} came back to visit.|And every spring, {x} came back to say "
            "hello.|Sometimes {h} saw {x} {p}, and they were still friends.]"
        )
    else:
        s.close(
            '"[May I keep {x}|Can {x} stay with us], please?" asked {h}. {G} [thought '
            "about it|looked at the two of them] and [nodded|said yes]. {H} and {x} became "
            "best friends. [They did everything together.|They played every day.|At night, "
            "{x} slept at the foot of {h}'s bed.]"
        )


def sharing(s):
    s.hero()
    s.friend()
    s.thing()
    s.place()
    s.tags["theme"] = s.dice.pick(["sharing", "two friends and one {o}", "learning to share"])
    s.open()
    s.say(
        "[One day|One afternoon|On Saturday], {h} and {h.his} friend {f} were playing {p}. "
        "[Next to {p.sight}|{P.spot}], they found {a o.full}. "
        '"[I saw it first|It is mine|I want it]!" said {h}. "No, [I saw it first|it is '
        'mine|I want it]!" said {f}. [They both pulled at the {o}.|{H} held one side, and '
        "{f} held the other.]"
    )
    s.ask("What did {h} and {f} find?|What did they find?", "They found {a o.full}.")
    s.ask("Where were {h} and {f}?|Where did they play?", "They were {p}.")
    s.say(
        '[They shouted so loudly that {g} came.|{G} heard the noise and came over.] "[What '
        'is going on here|Why are you fighting|Why all this noise]?" {g.he} asked. "[We '
        'both want the {o}|There is only one {o}]," said {f}. '
        '{G} [sat down with them|thought for a moment|smiled]. "[A {o} is more fun with '
        "two|Why do you not take turns|If you share, you can both be happy]. [{H} can have "
        'it first, and then {f}.|First one, then the other.|Try it.]"'
    )
    s.ask(
        "Why did they fight?|Why were they angry?",
        "They both wanted the {o}.|There was only one {o}, and both wanted it.",
    )
    s.ask("Who came to help?|Who helped them?", "{G} came.|{G} helped them.")
    s.say(
        '[{H} looked at {f}. {F} looked at {h}.|They were quiet for a while.] "I am '
        'sorry," said {h}. "I am sorry, too," said {f}. "You can [have it|go] first."',
        "So they took turns. [First {h} had the {o}, and then {f}.|{H} counted to ten, and "
        "then it was {f}'s turn.] [Soon they made up a new game with it.|They laughed and "
        "played until dinner.|It was much more fun than before.]",
    )
    s.ask(
        "How did they solve the problem?|What did they do in the end?",
        "They took turns.|They shared the {o}.",
    )
    s.close(
        "[{H} learned that [sharing is fun|it is better to share]|They both learned to "
        "share|After that day, they shared everything]."
    )


FEARS = {
    "the dark": (
        "turned off the lamp",
        "a little light of {h.his} own",
        "The dark was only the day with its eyes closed",
    ),
    "thunder": (
        "heard a loud boom",
        "a song that was louder than the storm",
        "Thunder was only a noise in the clouds",
    ),
    "deep water": (
        "saw the deep lake",
        "one small step at a time",
        "The water held {h.him} up like a soft bed",
    ),
    "the tall slide": (
        "stood at the top of the slide",
        "a hand to hold",
        "Going down felt like flying",
    ),
    "big dogs": (
        "saw the big dog next door",
        "a slow hand for the dog to sniff",
        "The big dog only wanted a friend",
    ),
    "high places": (
        "looked down from the tower",
        "a deep breath",
        "From up there, the whole world looked beautiful",
    ),
    "speaking in front of others": (
        "stood in front of everyone",
        "one friendly face to look at",
        "Everyone clapped",
    ),
}


def fear(s):
    s.hero()
    s.friend()
    fear = s.dice.pick(sorted(FEARS))
    s.put(fear=fear, when=FEARS[fear][0], trick=FEARS[fear][1], truth=FEARS[fear][2])
    s.tags["theme"] = s.dice.pick(["being brave", "being afraid of {fear}", "a brave {h.noun}"])
    s.open()
    s.say(
        "[{H} was [good at many things|not afraid of much], but {h.he}|There was one thing "
        "{h} did not like: {h.he}] was afraid of {fear}. "
        "Whenever {h.he} {when}, {h.his} [heart went boom, boom, boom|knees shook|hands "
        "got cold] and {h.he} wanted to [run away|hide|go home]."
    )
    s.ask("What was {h} afraid of?", "{H} was afraid of {fear}.|{H.he} was afraid of {fear}.")
    s.say(
        '{F} [saw this|asked what was wrong|noticed it]. "[I was afraid of {fear}, '
        'too|Everyone is afraid of something|It is all right to be afraid]," said {f}. '
        '"[Really|Is that true]?" asked {h}. '
        '"Yes. [Do you know what helps|Let me tell you what helped me]? You need {trick}."'
    )
    s.ask("Who helped {h}?", "{F} helped {h.him}.|It was {f}.")
    s.say(
        "[The next day|That evening|A little later], {h} wanted to try. [{H.his} heart was "
        "beating fast.|{H.he} was still afraid, but only a little.] {F} [stood next to "
        "{h.him}|stayed close]. "
        '"[You can do it|I am here with you|Be brave]!" said {f}. {H} closed {h.his} eyes, '
        "thought of {f}'s words, and [did it|tried]. And [nothing bad happened|it was not "
        "bad at all]! {Truth}."
    )
    s.ask(
        "Was {h} still afraid at the end?|Did {h} become brave?",
        "In the end, {h} was not afraid anymore.|{H} was brave in the end.",
    )
    s.close(
        '"I did it!" [shouted|laughed|said] {h}. "I [knew you could|am proud of you]," '
        "said {f}. [{H} told {g} all about it, and {g.he} was very proud.|From then on, "
        "{h} helped others who were afraid.|Being brave, {h} learned, means to try even "
        "when you are afraid.]"
    )


DISHES = {
    "cake": ("flour, eggs and sugar", "baked", "the oven"),
    "soup": ("carrots, onions and potatoes", "cooked", "the pot"),
    "bread": ("flour, water and salt", "baked", "the oven"),
    "apple pie": ("apples, butter and flour", "baked", "the oven"),
    "cookies": ("flour, butter and chocolate", "baked", "the oven"),
    "pancakes": ("milk, eggs and flour", "cooked", "the pan"),
    "jam": ("strawberries and sugar", "cooked", "the pot"),
    "salad": ("tomatoes, peas and radishes", "mixed", "the bowl"),
}


def cooking(s):
    s.hero()
    s.friend()
    dish = s.dice.pick(sorted(DISHES))
    s.put(
        dish=dish,
        parts=DISHES[dish][0],
        how=DISHES[dish][1],
        pot=DISHES[dish][2],
        it="them" if dish in ("cookies", "pancakes") else "it",
        these="these are" if dish in ("cookies", "pancakes") else "this is",
        adish=dish if dish in ("cookies", "pancakes", "soup", "bread", "jam") else "{a dish}",
        why=[
            "It was {g}'s birthday",
            "{G} was sick in bed",
            "{G} had worked hard all day",
            "{G} was sad",
        ],
        mishap=[
            "the bag fell and everything was white with flour",
            "the spoon fell on the floor with a crash",
            "they put in salt instead of sugar",
            "the milk ran over the table",
            "the bowl turned over",
        ],
    )
    s.tags["theme"] = s.dice.pick(["making {dish}", "a surprise for {g}", "cooking"])
    s.open()
    s.say(
        '{Why}. "[I want to make {adish} for {g}|Let us make {adish} for {g}]," {h} said '
        'to {f}. "[What a good plan|What a good idea|I will help you]," said {f}.'
    )
    s.ask(
        "What did {h} want to make?|What did they make?",
        "{H} wanted to make {adish}.|They made {adish}.",
    )
    s.ask("Who was the {dish} for?|Who got the {dish}?", "It was for {g}.|{G} got it.") if s.words[
        "it"
    ] == "it" else None
    s.ask("Why did {h} make {adish}?", "{Why}.")
    s.say(
        "They needed {parts}. [{H} found everything in the kitchen.|{F} brought the rest "
        "from home.|They bought it all at the market.] [They washed their hands and "
        "began.|First they washed their hands.] {H} [stirred|mixed], and {f} [sang a "
        "song|read what to do next|held the bowl].",
        '[But then|Suddenly|All at once], {mishap}! ["Oh no!" cried {f}.|"Oh dear!" said '
        '{h}.] [For a moment they just looked at each other. Then they began to laugh.|"It '
        'does not matter. We will start again," said {h}.|They cleaned up and tried again.]',
    )
    s.ask(
        "What went wrong?|What happened in the kitchen?",
        "{Mishap}.|Something went wrong: {mishap}.",
    )
    s.ask("What did they need?", "They needed {parts}.")
    s.say(
        "This time, [everything went well|they were careful]. [Soon a sweet smell filled "
        "the house.|They {how} {it} slowly and waited.|They waited in front of {pot}.]"
        if dish != "salad"
        else "This time, they were careful. They {how} {it} slowly."
    )
    s.close(
        '[They carried {it} to {g}.|When {g} came in, {g.he} saw {it} on the table.] "[For '
        'me|Is this for me|Did you make this]?" asked {g}. {G.he} tasted {it} and '
        '[smiled|closed {g.his} eyes|laughed with joy]. "[{These} the best {dish} in the '
        'world|How good|You made me very happy]!"[ said {g}.| {G.he} gave both of them a '
        "big hug.]"
    )


def storm(s):
    s.hero()
    s.friend()
    s.place(among=known.OUTSIDE)
    s.put(
        weather=["rain", "snow", "wind", "fog", "a storm"],
        shelter=["an old barn", "a dry cave", "a hollow tree", "a little hut", "a big rock"],
        game=[
            "told stories",
            "sang songs",
            "played a guessing game",
            "counted the drops",
            "shared a piece of bread",
        ],
        after=[
            "a rainbow stood over the hills",
            "the air smelled fresh",
            "the sun came out",
            "everything was shining",
        ],
    )
    s.tags["theme"] = s.dice.pick(["bad weather", "{weather}", "a trip {p.to}"])
    s.open()
    s.say(
        "[One morning|One day|On a warm day], {h} and {f} wanted to go {p.to}. [They "
        'packed [bread and apples|cheese and plums|cookies and milk].|"Take your coats," '
        "said {g}.] [They walked and talked and laughed.|The way was long, but they did "
        "not mind.]",
        "[They had just come to {p.sight}|They were looking at {p.sight}|They were far "
        "from home] when the sky turned [dark|gray]. [Then came {weather}|Soon there was "
        '{weather} all around them]. "[We must find a safe place|We cannot go on|What '
        'shall we do]!" said {f}.',
    )
    s.ask("Who went with {h}?", "{F} went with {h.him}.|{H.his} friend {f}.")
    s.ask("Where did {h} and {f} want to go?", "They wanted to go {p.to}.")
    s.ask("What was the weather like?|What came?", "There was {weather}.|{Weather} came.")
    s.say(
        '{H} [looked around|thought quickly] and saw {shelter}. "[Over there|Come|This '
        'way]!" {h.he} called. They ran as fast as they could. [Inside, it was dry|There, '
        "they were safe]. "
        "[At first they were afraid|It was cold, so they sat close together]. Then they "
        "{game}, and [the time went by quickly|soon they forgot the weather]."
    )
    s.ask(
        "Where did they hide?|Where were they safe?",
        "They hid in {shelter}.|They were safe in {shelter}."
        if s.words["shelter"] != "a big rock"
        else "They hid behind a big rock.",
    )
    s.ask("What did they do while they waited?", "They {game}.")
    s.close(
        "[After an hour|After a while|At last], it was over. They went outside, and "
        '{after}. ["How beautiful!" said {h}.|"Look!" said {f}.] [They went home '
        'together.|When they came home, {g} gave them hot [soup|milk|tea].|"That was a '
        'real adventure," said {f}.]'
    )


BREAKABLE = ("vase", "cup", "window", "plate", "clock", "lamp", "mirror", "teapot")


def honest(s):
    s.hero(animals=0.2)
    s.friend()
    s.put(
        b=BREAKABLE,
        b_color=known.COLORS[:9],
        act=[
            "threw a ball in the house",
            "ran through the room",
            "danced on the table",
            "climbed on a chair",
            "played with a stick",
        ],
        hide=["under the bed", "in the closet", "behind the sofa", "in a box"],
    )
    s.tags["theme"] = s.dice.pick(["telling the truth", "a broken {b}", "being honest"])
    s.open()
    s.say(
        '[One day|One rainy afternoon|On Tuesday], {h} was bored. {G} had said, "[Be '
        'careful in the house|No wild games inside]." But {h} {act}. [Crash!|Bang!|There '
        "was a loud noise.] {G}'s {b.color} {b} [fell down and broke|broke into pieces]."
    )
    s.ask("What broke?|What did {h} break?", "{G}'s {b.color} {b} broke.|{H} broke the {b}.")
    s.ask("Why did the {b} break?|How did the {b} break?", "{H} {act}.|It broke because {h} {act}.")
    s.say(
        "{H} was [scared|afraid]. [{G.he} will be so angry|What now], {h.he} thought. So "
        "{h.he} hid the pieces {hide}. [But {h.he} could not play anymore.|But {h.his} "
        "tummy felt bad all day.|But at dinner, {h} could not eat.]",
        '{H} told {f} about it. "[You should tell the truth|Just say what happened|Tell '
        '{g}]," said {f}. "But what if {g.he} is angry?" "[The truth is always better than '
        'a lie|It will feel better when you say it|{G} loves you. That will not change]."',
    )
    s.ask("Where did {h} hide the pieces?", "{H} hid them {hide}.")
    s.ask("What did {f} say?", "{F} told {h} to tell the truth.")
    s.say(
        'So {h} went to {g}. "I broke your {b}. I am [very |so |]sorry," {h.he} said [in a '
        "small voice|and looked at the floor]. {G} was quiet for a moment. Then {g.he} "
        '[took {h} in {g.his} arms|smiled]. "[I am glad that you told me|Thank you for '
        "telling the truth]. [A {b} is only a thing|We can glue it together|That was "
        'brave]."'
    )
    s.close(
        "[Together, they glued the {b}.|{H} helped to clean up.|{H} saved some coins and "
        "bought a new {b}.] [{H} felt as light as a feather.|{H} felt much better.|{H} "
        "learned that it is good to be honest.]"
    )


SKILLS = {
    "ride a bicycle": ("fell on the grass", "look ahead and not down"),
    "swim": ("swallowed water", "breathe out slowly"),
    "whistle": ("only blew air", "make a small round mouth"),
    "skate": ("sat down on the ice", "bend the knees a little"),
    "tie shoes": ("got only a knot", "make two ears and cross them"),
    "draw a horse": ("drew a potato with legs", "begin with big soft shapes"),
    "play the flute": ("made a terrible squeak", "blow very softly"),
    "climb a tree": ("slid down again", "hold on with both hands"),
    "catch a ball": ("closed {h.his} eyes", "watch the ball all the way"),
    "read": ("mixed up the letters", "go slowly, one word at a time"),
    "dance": ("stepped on {f}'s toes", "listen to the drum"),
    "fly a kite": ("pulled it into a bush", "wait for the wind"),
}


def learning(s):
    s.hero(animals=0)
    s.friend()
    skill = s.dice.pick(sorted(SKILLS))
    s.put(
        skill=skill,
        fail=SKILLS[skill][0],
        advice=SKILLS[skill][1],
        times=["three", "five", "ten", "twenty"],
    )
    s.tags["theme"] = s.dice.pick(["learning to {skill}", "not giving up", "trying again"])
    s.open()
    s.say(
        "[{H} wanted to {skill}.|More than anything, {h} wanted to learn to {skill}.] {F} "
        '[could do it already|was very good at it]. "Is it hard?" {h} asked. "[You must '
        'practice|Try it|I will show you]," said {f}.'
    )
    s.ask(
        "What did {h} want to learn?|What did {h} want to do?",
        "{H} wanted to learn to {skill}.|{H.he} wanted to {skill}.",
    )
    s.say(
        "[On the first day|At first|The first time], {h} {fail}. {H.he} tried again and "
        '{fail}. ["I will never learn this!" {h.he} said.|"It is too hard," said {h} and '
        "sat down.|{H.he} wanted to give up.] "
        '[{G} sat down next to {h.him}.|{G} had seen everything.] "[Nobody can do '
        "everything at once|I needed {times} tries when I was small|Every try makes you "
        'better]. [You need to|Remember to] {advice}," said {g}.'
    )
    s.ask("What happened at first?|What went wrong?", "At first, {h} {fail}.|{H} {fail}.")
    s.ask("Who gave {h} advice?|What did {g} say?", "{G} told {h} to {advice}.")
    s.say(
        "{H} [nodded|stood up|took a deep breath]. {H.he} tried again [and again|the next "
        "day|{times} times]. [Each time, it went a little better.|Slowly, it went better.] "
        "[And then, one day|Then, on a Friday|At last], {h} did it! {H.he} could {skill}!"
    )
    s.ask(
        "Did {h} learn to {skill}?",
        "Yes, in the end {h} could {skill}.|Yes, {h.he} did not give up.",
    )
    s.close(
        '"[Look, {g}! Look at me|I can do it|I did it]!" {h.he} [shouted|called]. {F} '
        'clapped, and {g} [was very proud|gave {h.him} a hug]. ["I am glad that I did not '
        'give up," said {h}.|{H} learned that practice makes hard things easy.]'
    )
