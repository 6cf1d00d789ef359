"""Facts, and how to do things: each function gives [(question, answer), ...]."""

from grammar import say

FACTS = {
    "the sun": "The sun is a star. It gives us light and warmth.",
    "the moon": "The moon goes around the earth. It shines at night with the light of the sun.",
    "a star": "A star is a ball of hot gas, very far away. At night, we see many stars.",
    "the earth": "The earth is the planet where we live. It goes around the sun once a year.",
    "rain": "Rain is water that falls from clouds. Plants need it to grow.",
    "snow": "Snow is frozen water. It falls in winter, and children like to play in it.",
    "ice": "Ice is frozen water. It is cold and hard.",
    "wind": "Wind is air that moves. It can carry leaves, seeds and kites.",
    "a cloud": "A cloud is made of many tiny drops of water.",
    "a rainbow": "A rainbow comes when the sun shines through rain. It has many colors.",
    "thunder": "Thunder is the sound of lightning. It can be very loud.",
    "a river": "A river is water that flows to the sea.",
    "the sea": "The sea is a lot of salt water. Fish and whales live in it.",
    "a mountain": "A mountain is very high land. There is often snow on its top.",
    "an island": "An island is land with water all around it.",
    "a desert": "A desert is a dry place with very little rain.",
    "a forest": "A forest is a place with many trees. Many animals live there.",
    "a tree": "A tree is a tall plant with roots, a trunk and leaves.",
    "a flower": "A flower is a part of a plant. Bees like its nectar.",
    "a seed": "A seed is small, but a whole plant can grow from it.",
    "honey": "Honey is sweet. Bees make it from the nectar of flowers.",
    "milk": "Milk comes from cows. Cheese and butter are made from it.",
    "bread": "Bread is made from flour and water. A baker bakes it in an oven.",
    "chocolate": "Chocolate is made from cocoa beans. It is brown and sweet.",
    "a book": "A book has many pages with words and pictures.",
    "a map": "A map is a picture of a place. It helps you to find the way.",
    "a clock": "A clock shows the time. It has two hands and twelve numbers.",
    "a computer": "A computer is a machine that works with numbers. I live in one.",
    "a robot": "A robot is a machine that can move and do work.",
    "a dragon": "A dragon is an animal of old tales. It can fly and breathe fire.",
    "a fairy": "A fairy is a small person of old tales, with wings and magic.",
    "a giant": "A giant is a very big person of old tales.",
    "a castle": "A castle is an old house of stone with thick walls and towers.",
    "a king": "A king rules a country. In tales, he wears a golden crown.",
    "a friend": "A friend is someone who likes you and helps you.",
    "love": "Love is a warm feeling for someone who is dear to you.",
    "a family": "A family is a group of people who live together and care for each other.",
    "music": "Music is made of sounds. People sing, dance and play to it.",
    "a dream": "A dream is a story that you see when you sleep.",
    "a story": "A story tells what happens to someone. It has a beginning and an end.",
    "a poem": "A poem is a short text that often has rhymes.",
    "a school": "A school is a place where children learn to read, write and count.",
    "winter": "Winter is the cold season. The days are short, and there may be snow.",
    "summer": "Summer is the warm season. The days are long, and people go swimming.",
    "spring": "In spring, the flowers bloom and the birds come back.",
    "autumn": "In autumn, the leaves turn red and yellow and fall from the trees.",
    "a bicycle": "A bicycle has two wheels. You ride it with your feet.",
    "a train": "A train runs on rails and carries many people.",
    "a ship": "A ship carries people and things over the sea.",
    "a language model": "A language model is a program that writes text, word by word. I am a small one.",
    "reproducibility": "It means that the same work gives the same result again, on any machine.",
}
WHY = {
    "Why do we sleep?": "We sleep because the body and the mind need rest.",
    "Why is the sky blue?": "The light of the sun has all colors, and the air spreads the blue most of all.",
    "Why do birds fly south?": "Birds fly south in autumn because it is warm there and they find food.",
    "Why do leaves fall?": "In autumn, trees let their leaves fall to save water in winter.",
    "Why does ice melt?": "Ice melts because it gets warm. Then it is water again.",
    "Why do we need water?": "All living things need water to live.",
    "Why do cats purr?": "Cats often purr when they feel well.",
    "Why do bees visit flowers?": "Bees visit flowers to collect nectar.",
    "Why should I read?": "Books take you to new places and teach you new things.",
    "Why should I brush my teeth?": "Brushing keeps your teeth clean and healthy.",
    "Why are you so small?": "I was made small so that I can live in every copy of Invar.",
    "Why is the grass green?": "Grass has a green color inside that drinks the light of the sun.",
}
CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "England": "London",
    "Japan": "Tokyo", "Egypt": "Cairo", "Norway": "Oslo", "Austria": "Vienna", "Ireland": "Dublin",
    "Greece": "Athens", "Peru": "Lima", "Portugal": "Lisbon", "Poland": "Warsaw", "Sweden": "Stockholm",
    "Russia": "Moscow", "China": "Beijing", "Canada": "Ottawa", "Hungary": "Budapest",
    "Switzerland": "Bern",
}  # fmt: skip
HOW = {
    "make a sandwich": (
        "Take two slices of bread",
        "Put butter, cheese and tomato on one",
        "Put the other slice on top",
    ),
    "make tea": (
        "Boil some water",
        "Pour it over the tea",
        "Wait three minutes",
        "Add a little honey",
    ),
    "plant a seed": (
        "Fill a pot with earth",
        "Put the seed into it",
        "Give it water and light",
        "Wait",
    ),
    "wash your hands": (
        "Make your hands wet",
        "Take soap and rub them",
        "Wash off the soap",
        "Dry them with a towel",
    ),
    "make a paper boat": (
        "Take a sheet of paper",
        "Fold it in half",
        "Fold the corners",
        "Pull it open",
    ),
    "build a snowman": (
        "Roll a big ball of snow",
        "Put two smaller balls on top",
        "Add eyes of coal and a carrot for the nose",
    ),
    "fall asleep": (
        "Turn off the light",
        "Lie down and close your eyes",
        "Breathe slowly",
        "Think of something nice",
    ),
    "write a story": (
        "Choose a hero",
        "Give the hero a problem",
        "Let a friend help",
        "Find a good end",
    ),
    "make a friend": (
        "Smile and say hello",
        "Ask for the name",
        "Find something that you both like",
        "Share it",
    ),
    "bake bread": ("Mix flour, water and salt", "Let the dough rest", "Bake it until it is brown"),
    "clean a room": ("Put the toys into a box", "Put the books on the shelf", "Sweep the floor"),
    "check an answer of mine": ("Keep the receipt", "Run invar verify with it", "Read the verdict"),
}


def fact(d):
    if d.chance(0.25):
        ask = d.pick(sorted(WHY))
        return [(ask, WHY[ask])]
    if d.chance(0.25):
        country = d.pick(sorted(CAPITALS))
        ask = say(
            d,
            "[What is the capital of {c}|Which city is the capital of {c}|Capital of {c}]?",
            c=country,
        )
        return [
            (
                ask,
                say(
                    d,
                    "[The capital of {c} is {t}.|It is {t}.|{t} is the capital of {c}.]",
                    c=country,
                    t=CAPITALS[country],
                ),
            )
        ]
    thing = d.pick(sorted(FACTS))
    ask = say(
        d,
        "[What is {x}?|What is {x}?|Tell me about {x}.|What do you know about {x}?|Explain "
        "{x}.|Do you know what {x} is?|Describe {x}.]",
        x=thing,
    )
    return [(ask, FACTS[thing])]


def how_to(d):
    what = d.pick(sorted(HOW))
    ask = say(
        d,
        "[How do I {w}?|How can I {w}?|How do you {w}?|Tell me how to {w}.|Explain how to {w}.]",
        w=what,
    )
    steps = HOW[what]
    if d.chance(0.5):
        return [(ask, "\n".join(f"{i + 1}. {step}." for i, step in enumerate(steps)))]
    lowered = [step[0].lower() + step[1:] for step in steps]
    return [(ask, "First, " + ". Then ".join([lowered[0], ". Then ".join(lowered[1:])]) + ".")]
