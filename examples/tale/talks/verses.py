"""Jokes, riddles, poems, and what the model does not know."""

from grammar import say


def joke(d):
    return [
        (
            say(
                d,
                "[Tell me a joke|Do you know a joke|Make me laugh|Another joke|Say "
                "something funny|Can you tell me a joke].",
            ).replace("joke.", "joke" + d.pick([".", "!", "?"])),
            d.pick(
                [
                    "Why did the snail bring a ladder? It wanted to see the stars from the "
                    "second floor.",
                    "What did the zero say to the eight? Nice belt!",
                    "Why was the math book sad? It had too many problems.",
                    "Why did the clock go to school? It wanted to learn how to tell the time.",
                    "What do you call a bear without teeth? A gummy bear!",
                    "Why do bees hum? They do not know the words.",
                    "Why did the cookie go to the doctor? It felt crumbly.",
                    "What is orange and sounds like a parrot? A carrot!",
                    "Why did the teddy bear not eat the cake? It was already stuffed.",
                    "Where do sheep get a haircut? At the baa-baa shop.",
                    "Why did the tomato turn red? It saw the salad dressing.",
                    "What do you get when a cow jumps? A milk shake.",
                ]
            ),
        )
    ]


RIDDLES = (
    ("What has hands but cannot clap?", "A clock."),
    ("What has a neck but no head?", "A bottle."),
    ("What gets wet while it dries?", "A towel."),
    ("What has teeth but cannot bite?", "A comb."),
    ("What goes up but never comes down?", "Your age."),
    ("What has one eye but cannot see?", "A needle."),
    ("What has four legs but cannot walk?", "A table."),
    ("What can you catch but not throw?", "A cold."),
    ("What has many leaves but is no tree?", "A book."),
    ("What runs but has no legs?", "A river."),
    ("What falls but never gets hurt?", "The rain."),
    ("What has keys but opens no door?", "A piano."),
)


def riddle(d):
    question, answer = d.pick(RIDDLES)
    if d.chance(0.5):
        return [(question, answer)]
    right = d.chance(0.5)
    guess = answer if right else d.pick([a for _, a in RIDDLES if a != answer])
    return [
        (
            say(
                d, "[Tell me a riddle|Ask me a riddle|Do you know a riddle|Give me a riddle][.|!|]"
            ),
            question,
        ),
        *(
            [(guess, f"Yes, that is right! It is {answer[0].lower() + answer[1:]}")]
            if right
            else [
                (
                    say(d, "[I do not know|Tell me|What is it|I give up]."),
                    f"It is {answer[0].lower() + answer[1:]}",
                )
            ]
        ),
    ]


def poem(d):
    topic = d.pick(
        [
            "the moon",
            "the sea",
            "a cat",
            "the rain",
            "a tree",
            "winter",
            "spring",
            "a friend",
            "the stars",
            "a mouse",
            "the sun",
            "night",
        ]
    )
    lines = {
        "the moon": "The silver moon is shining bright,|it fills the garden with its light.|The owls "
        "are singing in the tree,|and all the stars look down on me.",
        "the sea": "The sea is wide, the sea is blue,|it sings a song for me and you.|The waves come "
        "in, the waves go out,|and white birds fly and turn about.",
        "a cat": "My little cat sat on the mat,|she wore a tiny yellow hat.|She looked at me and "
        "closed one eye,|and dreamed of birds up in the sky.",
        "the rain": "Drip and drop, I hear the rain,|it taps upon the window pane.|The flowers drink, "
        "the frogs all sing,|and tomorrow it will be spring.",
        "a tree": "A tall old tree stands on the hill,|when the wind sleeps, it is so still.|It "
        "gives us apples, red and round,|and golden leaves upon the ground.",
        "winter": "The snow falls softly on the town,|the white flakes dance and tumble down.|We sit "
        "inside and drink our tea,|as warm and happy as can be.",
        "spring": "The spring is here, the sky is blue,|the birds have come, the flowers, too.|The "
        "bees are humming all the day,|and children run outside to play.",
        "a friend": "A friend is someone who is there,|who likes to laugh, who likes to share.|On "
        "rainy days and in the sun,|with a good friend, all things are fun.",
        "the stars": "The stars are out, so far, so small,|I try to count them, one and all.|I count to "
        "ten, I count some more,|and then I sleep, and dream of four.",
        "a mouse": "A little mouse lived in a house,|a very small and quiet mouse.|It ate some "
        "cheese, it took a nap,|and never went into a trap.",
        "the sun": "The sun comes up, the day is new,|the grass is wet with drops of dew.|It shines "
        "on you, it shines on me,|on every house and every tree.",
        "night": "The day is done, the lamps are low,|the moon walks on the fields of snow.|Good "
        "night, small bird, good night, old tree,|good night to you, good night to me.",
    }[topic]
    return [
        (
            say(
                d,
                "[Write a poem about {t}|Tell me a poem about {t}|Can you write a poem "
                "about {t}|A short poem about {t}, please|I want a poem about {t}].",
                t=topic,
            ),
            lines.replace("|", "\n"),
        )
    ]


UNKNOWN = (
    "Who won the [world cup|election|race last year]?",
    "What is the population of [France|Germany|Spain|Japan|Brazil|Egypt|Peru]?",
    "[Who wrote|Who painted|Who invented] [Hamlet|the telephone|the Mona Lisa|the light "
    "bulb|this program]?",
    "How far is [the moon|Mars|the next star]?",
    "What is [quantum physics|a black hole|the meaning of life|inflation|a blockchain|an "
    "algorithm|gravity|electricity]?",
    "Who is [the president|the king|Einstein|Napoleon|my teacher|my neighbor]?",
    "How do I [fix my car|install Linux|make money|write a program|cook rice|tie a tie]?",
    "What will happen [tomorrow|next year|in the future]?",
    "Translate this into [French|German|Spanish|Latin].",
    "What did I [eat|do|dream] [yesterday|last night]?",
    "Write a [Python program|letter to the bank|report about the economy].",
    "Explain [relativity|chemistry|the stock market|democracy|evolution].",
    "How much does [a house|a car|an elephant] [cost|weigh]?",
    "What is the [tallest mountain|longest river|largest country|fastest car]?",
    "When did [the war end|the train leave|the moon appear|history begin]?",
    "What is the square root of [two|five|a million]?",
    "What is the best [movie|song|restaurant|computer|phone]?",
    "Do you know [Shakespeare|Python|Mozart|my mother|Paris]?",
)


def unknown(d):
    return [
        (
            say(d, d.pick(UNKNOWN)),
            say(
                d,
                "[I do not know that.|I am sorry, I do not know.|That is too hard for "
                "me.|I do not know. I am only a small model.] [I know stories and simple "
                "things.|But I can tell you a story.|Ask me about animals, colors or "
                "numbers.|Shall I tell you a story instead?]",
            ),
        )
    ]
