"""What the stories and the talks know: people, animals, things, places."""

GIRLS = """Lily Mia Anna Emma Sara Zoe Lucy Ella Nora Ruby Ivy Rosa Clara Maya Lena Tess Amy Kate Jane
Molly Daisy Nina Eva Holly Alice Leah June Lola Penny Wendy Hana Aisha Mei Priya Olga Freya""".split()
BOYS = """Tom Ben Max Sam Leo Jack Finn Noah Luke Adam Oscar Theo Hugo Milo Otto Felix Jake Peter Paul
Eli Ned Toby Kai Omar Ravi Ivan Ali Hans Joe Dan Billy Henry Oliver Simon Victor Marco""".split()
# Parts of names that are made up.
BEGINS = """Ba Bo Da Do El Fa Fe Ga Ha Il Ja Ka Ki La Lo Ma Me Na Ni Or Pa Pe Ra Ri Sa Sha So Ta Ti Ul Va Vi Wa
Xa Ya Ze Zo""".split()
MIDDLES = "ra li mo na ri do ve la mi ni lo ka sa te vi no be".split() + [""] * 12
ENDS = "a na la ia elle ina ra ya n ro s k vin dor mo lo r us".split()
PETS = """Rusty Pip Coco Fluffy Spot Bella Nibbles Pepper Biscuit Ginger Sunny Patch Snowy Buttons
Whiskers Muffin Shadow Hazel Cloud Dusty Bramble Pebble Sparky Acorn Tiggy Mossy Bubbles Honey""".split()
SURNAMES = "Brown Green Hill Baker Wood Stone Fisher Bell Field Reed Moss Lane Frost Gray".split()

# noun, sound, home, food, what it does well, how it moves, colours, young one, covering, legs, size
ANIMALS = {
    "dog": ("barks", "a kennel", "bones", "sniff", "run", "brown", "puppy", "fur", 4, 5),
    "cat": ("meows", "a basket", "fish", "climb", "walk", "gray", "kitten", "fur", 4, 4),
    "rabbit": ("squeaks", "a burrow", "carrots", "dig", "hop", "white", "bunny", "fur", 4, 3),
    "fox": ("yaps", "a den", "berries", "sneak", "run", "red", "cub", "fur", 4, 5),
    "bear": ("growls", "a cave", "honey", "climb", "walk", "brown", "cub", "fur", 4, 8),
    "mouse": ("squeaks", "a hole", "cheese", "hide", "scurry", "gray", "pup", "fur", 4, 1),
    "bird": ("sings", "a nest", "seeds", "sing", "fly", "blue", "chick", "feathers", 2, 2),
    "owl": (
        "hoots",
        "a hollow tree",
        "mice",
        "see at night",
        "fly",
        "brown",
        "owlet",
        "feathers",
        2,
        4,
    ),
    "duck": ("quacks", "a pond", "bread", "swim", "swim", "yellow", "duckling", "feathers", 2, 3),
    "hen": ("clucks", "a coop", "corn", "lay eggs", "walk", "red", "chick", "feathers", 2, 3),
    "frog": ("croaks", "a pond", "flies", "jump", "hop", "green", "tadpole", "skin", 4, 1),
    "fish": (
        "makes no sound",
        "the water",
        "worms",
        "swim",
        "swim",
        "orange",
        "fry",
        "scales",
        0,
        2,
    ),
    "turtle": (
        "makes no sound",
        "the pond",
        "leaves",
        "swim",
        "crawl",
        "green",
        "hatchling",
        "a shell",
        4,
        3,
    ),
    "squirrel": ("chatters", "a tree", "nuts", "climb", "run", "red", "kit", "fur", 4, 2),
    "hedgehog": (
        "snuffles",
        "a pile of leaves",
        "bugs",
        "roll up",
        "walk",
        "brown",
        "hoglet",
        "spikes",
        4,
        2,
    ),
    "bee": ("buzzes", "a hive", "nectar", "make honey", "fly", "yellow", "grub", "fuzz", 6, 1),
    "horse": ("neighs", "a stable", "hay", "gallop", "gallop", "brown", "foal", "hair", 4, 9),
    "cow": (
        "moos",
        "a barn",
        "grass",
        "give milk",
        "walk",
        "black and white",
        "calf",
        "hair",
        4,
        9,
    ),
    "pig": ("oinks", "a sty", "apples", "find food", "trot", "pink", "piglet", "skin", 4, 6),
    "sheep": ("bleats", "a field", "grass", "grow wool", "walk", "white", "lamb", "wool", 4, 6),
    "goat": ("bleats", "a shed", "leaves", "climb", "jump", "white", "kid", "hair", 4, 6),
    "lion": ("roars", "the savanna", "meat", "hunt", "run", "yellow", "cub", "fur", 4, 8),
    "elephant": (
        "trumpets",
        "the savanna",
        "leaves",
        "lift logs",
        "walk",
        "gray",
        "calf",
        "skin",
        4,
        10,
    ),
    "monkey": (
        "chatters",
        "the jungle",
        "bananas",
        "swing",
        "climb",
        "brown",
        "baby monkey",
        "fur",
        4,
        4,
    ),
    "wolf": ("howls", "a den", "meat", "howl", "run", "gray", "pup", "fur", 4, 6),
    "penguin": (
        "honks",
        "the ice",
        "fish",
        "swim",
        "waddle",
        "black and white",
        "chick",
        "feathers",
        2,
        4,
    ),
    "snail": (
        "makes no sound",
        "a shell",
        "leaves",
        "hide",
        "crawl",
        "brown",
        "baby snail",
        "a shell",
        0,
        1,
    ),
    "butterfly": (
        "makes no sound",
        "the meadow",
        "nectar",
        "fly",
        "fly",
        "orange",
        "caterpillar",
        "scales",
        6,
        1,
    ),
    "whale": ("sings", "the sea", "tiny shrimp", "dive", "swim", "blue", "calf", "skin", 0, 10),
    "snake": ("hisses", "a hole", "eggs", "hide", "slide", "green", "hatchling", "scales", 0, 3),
}
SIZES = {name: row[-1] for name, row in ANIMALS.items()}
BIRDS = "robin owl duck hen penguin eagle swan parrot goose sparrow".split()
# Those that a story may be about.
HEROES = """rabbit fox bear mouse bird owl duck frog turtle squirrel hedgehog dog cat pig lamb rabbit fox bear
mouse owl cat dog hen goat pony panda tiger koala penguin elephant monkey wolf snail hamster badger beaver
otter raccoon deer donkey zebra giraffe crab swan goose kangaroo lion ant bat crow camel""".split()
# Other heroes: he or she, and where they live.
FIGURES = {
    "princess": ("she", "a tall castle"), "prince": ("he", "a tall castle"),
    "king": ("he", "a golden castle"), "queen": ("she", "a golden castle"),
    "knight": ("he she", "a tower of stone"),
    "robot": ("he", "a workshop full of tools"), "dragon": ("he she", "a cave in the mountains"),
    "unicorn": ("she", "a silver forest"), "pirate": ("he she", "an old ship"),
    "wizard": ("he", "a crooked tower"), "witch": ("she", "a little house in the woods"),
    "fairy": ("she", "a garden full of flowers"), "elf": ("he she", "a house in a tree"),
    "giant": ("he", "a valley behind the mountains"), "baker": ("he she", "a house behind the bakery"),
    "farmer": ("he she", "a farmhouse"), "sailor": ("he she", "a house by the sea"),
    "astronaut": ("he she", "a house near the rocket"), "gardener": ("he she", "a house full of plants"),
    "painter": ("he she", "a house with big windows"), "shepherd": ("he she", "a hut on the hill"),
    "clown": ("he she", "a colorful wagon"), "inventor": ("he she", "a house full of wheels"),
}  # fmt: skip
FOUND = "puppy kitten bird duckling rabbit hedgehog squirrel turtle lamb owl".split()

# A toy, and what one does with it.
TOYS = {
    "ball": "throw it high into the air", "kite": "watch it dance in the wind",
    "doll": "brush its hair", "drum": "play a loud song on it",
    "teddy bear": "hug it at night", "toy car": "race it across the floor",
    "toy boat": "sail it on the water", "train": "push it along its track",
    "whistle": "blow it on the way to school", "hat": "wear it on sunny days",
    "scarf": "wear it on cold days", "key": "open the little box with it",
    "bell": "ring it before dinner", "book": "read it before bed",
    "umbrella": "dance under it in the rain", "puzzle": "put its pieces together",
    "marble": "roll it down the hill", "spinning top": "watch it turn round and round",
    "lantern": "carry it through the dark", "crayon": "draw big suns with it",
    "shovel": "dig deep holes with it", "wagon": "pull it up the road",
    "ring": "look at it in the light", "button": "keep it in a pocket",
    "blanket": "make a tent of it", "flute": "play soft songs on it",
}  # fmt: skip
THINGS = """spoon cup plate fork pot apple pumpkin feather stone shell leaf flower rose ribbon necklace crown
coin watch clock phone camera guitar violin trumpet robot rocket bicycle skateboard sled ladder basket
bucket bottle box letter map picture painting pencil pen notebook backpack pillow mirror lamp candle jacket coat shoe boot sock glove
dress shirt belt purse ticket flag balloon compass telescope sword shield helmet wand pebble acorn mug
vase cushion rug net rope cart tent drum stick broom comb brush chain medal mask puppet""".split()
THING_USES = ("look at it", "carry it everywhere", "show it to everyone", "keep it next to the bed",
              "clean it and polish it",
              "play with it", "think of it", "sing a song about it")  # fmt: skip
COLORS = "red blue green yellow orange purple pink white brown golden silver black".split()
# A place, with its preposition: what is there, and where a thing may hide.
PLACES = {
    "in the park": (("a bench", "a fountain", "a tall slide", "a row of swings"),
                    ("under the bench", "behind the slide", "in the sandbox", "under a pile of leaves")),
    "in the garden": (("a wall of roses", "a wooden gate", "an apple tree", "a little shed"),
                      ("behind the roses", "under the apple tree", "in the flower pot", "next to the shed")),
    "in the forest": (("an old oak", "a hollow log", "a quiet stream", "a path of moss"),
                      ("inside the hollow log", "behind the old oak", "under a big leaf", "among the ferns")),
    "at the beach": (("a sand castle", "a row of shells", "a long pier", "small white waves"),
                     ("under the sand", "behind a rock", "next to the shells", "under the pier")),
    "at school": (("a big map", "a shelf of books", "a bell on the wall", "many small chairs"),
                  ("under a chair", "behind the shelf", "in the paint box", "next to the map")),
    "at the market": (("baskets of fruit", "a man with balloons", "a stall of cheese", "sacks of nuts"),
                      ("under the fruit stall", "behind a basket", "among the apples", "next to the cheese")),
    "on the farm": (("a red barn", "a muddy pond", "a stack of hay", "a noisy coop"),
                    ("in the hay", "behind the barn", "next to the pond", "under the tractor")),
    "by the river": (("a wooden bridge", "smooth stones", "tall reeds", "a small boat"),
                     ("under the bridge", "among the reeds", "between two stones", "inside the boat")),
    "on the hill": (("an old windmill", "a lonely tree", "soft green grass", "a wide view of the town"),
                    ("in the long grass", "behind the windmill", "under the lonely tree", "next to a stone")),
    "by the lake": (("a little dock", "white swans", "water lilies", "a boat house"),
                    ("under the dock", "behind the boat house", "among the lilies", "in the mud")),
    "in the meadow": (("yellow flowers", "a fallen tree", "buzzing bees", "a fence of stones"),
                      ("among the flowers", "under the fallen tree", "behind the fence", "in a rabbit hole")),
    "in the attic": (("old boxes", "a dusty mirror", "a round window", "a trunk with a lock"),
                     ("inside the trunk", "behind the mirror", "under an old box", "next to the window")),
    "in the kitchen": (("a warm oven", "a round table", "a jar of cookies", "pots and pans"),
                       ("under the table", "behind the jar", "inside a pot", "next to the oven")),
    "in the library": (("rows of books", "a quiet reading corner", "a tall ladder", "a soft carpet"),
                       ("between two books", "under the ladder", "behind the big shelf", "on a chair")),
}  # fmt: skip
OUTSIDE = [
    p for p in PLACES if p not in ("at school", "in the attic", "in the kitchen", "in the library")
]

FRUITS = "apple pear banana orange plum cherry grape peach lemon strawberry".split()
VEGETABLES = "carrot potato onion pea bean cabbage tomato pumpkin radish leek".split()
FLOWERS = "rose tulip daisy lily sunflower violet poppy".split()
TREES = "oak pine birch maple willow apple elm".split()
CLOTHES = "hat coat scarf shoe sock shirt dress glove boot belt".split()
FURNITURE = "chair table bed shelf sofa desk lamp cupboard".split()
TOOLS = "hammer saw shovel rake broom brush needle ladder".split()
VEHICLES = "car bus train boat bicycle truck plane tractor".split()
INSTRUMENTS = "drum flute piano violin guitar trumpet harp bell".split()
SHAPES = "circle square triangle star heart line".split()
BODY = "hand foot head nose ear eye arm leg mouth knee".split()
WEATHER = "sunny rainy windy snowy cloudy foggy stormy".split()
KINDS = {
    "animal": sorted(ANIMALS), "fruit": FRUITS, "vegetable": VEGETABLES, "flower": FLOWERS, "tree": TREES,
    "color": COLORS[:9], "toy": ["ball", "kite", "doll", "drum", "puzzle", "marble", "train"],
    "bird": BIRDS, "tool": TOOLS, "vehicle": VEHICLES, "instrument": INSTRUMENTS, "shape": SHAPES,
}  # fmt: skip
PLURALS = {
    "mouse": "mice", "fish": "fish", "sheep": "sheep", "foot": "feet", "strawberry": "strawberries",
    "cherry": "cherries", "bus": "buses", "box": "boxes", "wolf": "wolves", "potato": "potatoes",
    "tomato": "tomatoes", "lily": "lilies", "daisy": "daisies", "poppy": "poppies", "fox": "foxes",
    "bench": "benches", "leaf": "leaves", "child": "children", "tooth": "teeth", "man": "men",
    "woman": "women", "goose": "geese", "butterfly": "butterflies", "peach": "peaches", "radish": "radishes",
    "puppy": "puppies", "brush": "brushes", "dress": "dresses", "baby": "babies", "story": "stories",
    "shelf": "shelves", "clothes": "clothes", "monkey": "monkeys", "knife": "knives",
}  # fmt: skip


def made_name(d):
    """A name that nobody has: it can only be copied."""
    return d.pick(BEGINS) + d.pick(MIDDLES) + d.pick(ENDS)


def people(d, count):
    """Different names."""
    found = []
    for name in d.picks(GIRLS + BOYS, count):
        other = made_name(d) if d.chance(0.25) else name
        found.append(name if other in found else other)
    return found


def plural(noun):
    return PLURALS.get(noun, noun + "s")


THING_COLORS = {
    "sky": "blue", "grass": "green", "snow": "white", "sun": "yellow", "banana": "yellow", "cherry": "red",
    "strawberry": "red", "carrot": "orange", "lemon": "yellow", "frog": "green", "coal": "black",
    "milk": "white", "sea": "blue", "leaf": "green", "pumpkin": "orange", "plum": "purple", "pig": "pink",
    "cloud": "white", "night": "black", "chocolate": "brown", "tomato": "red", "violet": "purple",
    "corn": "yellow", "butter": "yellow", "blood": "red", "elephant": "gray", "pea": "green",
    "fire": "orange",
}  # fmt: skip
OPPOSITES = [
    p.split("-")
    for p in """big-small hot-cold day-night up-down happy-sad fast-slow open-closed
wet-dry light-dark hard-soft loud-quiet old-young full-empty early-late tall-short near-far good-bad
clean-dirty rich-poor strong-weak left-right in-out first-last new-old sweet-sour brave-afraid thick-thin
heavy-light awake-asleep begin-end love-hate push-pull above-below inside-outside always-never yes-no
win-lose give-take laugh-cry rough-smooth deep-shallow wide-narrow friend-enemy true-false summer-winter
question-answer buy-sell warm-cool black-white same-different start-stop come-go high-low""".split()
]
RHYMES = [
    g.split()
    for g in """cat hat mat bat|dog log frog fog|sun run fun bun|tree bee sea knee|moon spoon
soon noon|star car far jar|house mouse|boat coat goat|night light kite bite|rain train cane|bear chair hair
pear|ball wall tall small|cake lake snake rake|king ring sing wing|fox box socks rocks|bed red head|sky fly
pie high|day play hay gray|nose rose hose toes|hill mill pill|snow bow crow low|sheep sleep deep|feet sweet
street|pig wig dig|bug rug hug mug|hen pen ten men|gold cold old|flower tower hour|book cook hook look""".replace(
        "\n", " "
    ).split("|")
]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November December""".split()
SEASONS = "spring summer autumn winter".split()
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty""".split()
PAST = dict(
    p.split("-")
    for p in """run-ran jump-jumped eat-ate drink-drank sing-sang swim-swam fly-flew
go-went see-saw find-found give-gave take-took make-made write-wrote read-read sleep-slept walk-walked
play-played laugh-laughed cry-cried dance-danced draw-drew drive-drove fall-fell feel-felt grow-grew hide-hid
hold-held keep-kept know-knew leave-left lose-lost meet-met ride-rode say-said send-sent sit-sat speak-spoke
stand-stood tell-told think-thought throw-threw wake-woke wear-wore win-won help-helped climb-climbed
open-opened close-closed cook-cooked wash-washed look-looked ask-asked""".split()
)
USES = {
    "spoon": "eat soup", "key": "open a door", "pen": "write", "bed": "sleep", "book": "read",
    "umbrella": "stay dry in the rain", "broom": "sweep the floor", "hammer": "hit a nail", "cup": "drink",
    "knife": "cut bread", "lamp": "make light", "oven": "bake a cake", "clock": "tell the time",
    "soap": "wash your hands", "needle": "sew", "boat": "cross the water", "ladder": "climb up high",
    "blanket": "stay warm", "comb": "comb your hair", "map": "find the way", "rope": "tie things together",
    "ruler": "measure a line", "phone": "talk to a friend far away", "basket": "carry apples",
    "shovel": "dig a hole", "towel": "dry yourself", "pillow": "rest your head", "bell": "call someone",
    "glasses": "see better", "scissors": "cut paper", "camera": "take a picture", "bucket": "carry water",
}  # fmt: skip
PLACES_OF = {
    "fish": "in the water", "books": "in a library", "stars": "in the sky", "cows": "on a farm",
    "bread": "in a bakery", "trees": "in a forest", "waves": "in the sea", "lions": "in the savanna",
    "children": "in a school", "doctors": "in a hospital", "clouds": "in the sky", "sand": "on a beach",
    "bees": "in a hive", "monkeys": "in the jungle", "snow": "on a mountain", "flowers": "in a garden",
    "ships": "on the sea", "trains": "at a station", "planes": "at an airport", "pans": "in a kitchen",
}  # fmt: skip
JOBS = {
    "baker": "bakes bread", "teacher": "teaches children", "doctor": "helps sick people",
    "farmer": "grows food", "fisher": "catches fish", "tailor": "makes clothes", "pilot": "flies planes",
    "painter": "paints pictures", "gardener": "looks after plants", "cook": "cooks meals",
    "singer": "sings songs", "carpenter": "makes things of wood", "writer": "writes books",
    "firefighter": "puts out fires", "vet": "helps sick animals", "sailor": "sails ships",
    "librarian": "looks after books", "builder": "builds houses", "dentist": "looks after teeth",
    "driver": "drives a bus",
}  # fmt: skip
