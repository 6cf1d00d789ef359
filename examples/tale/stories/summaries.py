"""Of each plot: the story in one sentence, and what one can learn from it."""

SUMMARIES = {
    "lost": (
        "{H} lost {a o.full}, and {f} helped {h.him} to find it {p.spot3}.",
        "Good friends help each other.|With a friend, one finds what is lost.|Do not give up "
        "when you look for something.",
    ),
    "rescue": (
        "{H} found a little {x.noun}, took it home and looked after it until it was well.",
        "Be kind to animals.|Even small animals need our help.|Those who help others find friends.",
    ),
    "sharing": (
        "{H} and {f} both wanted {a o.full}, but then they learned to share it.",
        "Sharing is better than fighting.|It is more fun to share.|Two can be happy with one {o}.",
    ),
    "fear": (
        "{H} was afraid of {fear}, but with the help of {f}, {h.he} became brave.",
        "Being brave means to try even when you are afraid.|Everyone is afraid of something, "
        "and friends can help.|You can do more than you think.",
    ),
    "cooking": (
        "{H} and {f} made {adish} for {g}, and {g.he} was very happy.",
        "It does not matter if something goes wrong. Try again.|It is nice to make others "
        "happy.|Love is the best part of a meal.",
    ),
    "storm": (
        "{H} and {f} went {p.to}, and bad weather came, but they were safe in the end.",
        "With a friend, even bad weather is fun.|Stay together when it gets hard.|After bad "
        "weather comes the sun.",
    ),
    "honest": (
        "{H} broke {g}'s {b} and hid it, but then {h.he} told the truth.",
        "It is good to tell the truth.|The truth is better than a lie.|Being honest makes the "
        "heart light.",
    ),
    "learning": (
        "{H} wanted to learn to {skill}, and after many tries {h.he} could do it.",
        "Do not give up.|Practice makes hard things easy.|Every try makes you better.",
    ),
    "treasure": (
        "{H} and {f} found an old map and then a treasure {p.spot2}.",
        "Do not give up when the search is long.|A friend is the best treasure.|Think twice "
        "before you dig.",
    ),
    "wish": (
        "{H} helped {fairy} and got a wish, but the wish was not a good one.",
        "Be careful what you wish for.|{Moral}.|What you have may be better than what you wish "
        "for.",
    ),
    "different": (
        "{H} the {h.noun} wanted to be {want}, but then {h.he} helped everyone just as {h.he} was.",
        "It is good to be yourself.|Everyone is good at something.|Being different can be a gift.",
    ),
    "newcomer": (
        "{H} was new and lonely, until {f} came and became {h.his} friend.",
        "A kind word can begin a friendship.|Be friendly to those who are alone.|It is easy to "
        "make someone happy.",
    ),
    "stuck": (
        "The {o} of {h} and {f} landed {where}, and {g} helped them to get it down.",
        "It is good to ask for help.|Together, we can do more.|A good idea is better than a "
        "strong arm.",
    ),
    "seed": (
        "{H} planted a seed and waited a long time, until {a plant} grew from it.",
        "Good things need time.|Be patient.|Look after small things, and they will grow.",
    ),
    "race": (
        "{H} the {h.noun} won a race against {f} the {f.noun}, because {f} was too proud.",
        "Never give up.|Do not laugh at those who are slow.|Slow and steady wins the race.",
    ),
    "night": (
        "{H} could not sleep and heard {sound}, but it was {was}.",
        "Most sounds of the night are harmless.|When you know what it is, it is not so "
        "scary.|It is good to ask for help when you are afraid.",
    ),
    "kindness": (
        "{H} had {coins} coins for {want}, but {h.he} bought {gave} for {the old}.",
        "Kindness always comes back.|It is good to give.|A kind heart is worth more than coins.",
    ),
    "surprise": (
        "{H} thought that everyone had forgotten {h.his} birthday, but there was a surprise party.",
        "Friends do not forget you.|Things are not always as they seem.|A surprise can "
        "hide "
        "behind a sad day.",
    ),
    "monster": (
        "Everyone was afraid of {a beast}, but {h} talked to it and became its friend.",
        "Do not believe everything that people say.|Be kind to those who are alone.|Look "
        "closely before you are afraid.",
    ),
    "chores": (
        "{H} had to {job}, and {f} helped, so they could {fun} together.",
        "Work is faster with a friend.|First work, then play.|Helping a friend is fun.",
    ),
    "mystery": (
        "{Gone} {was} gone, and {h} and {f} found out that {a thief} had taken {them}.",
        "Look closely, and you will find the truth.|Do not blame anyone too soon.|Two see "
        "more than one.",
    ),
    "invention": (
        "{H} built {made}; at first it went wrong, but in the end it worked.",
        "Every mistake tells us something.|Do not give up after the first try.|Good ideas "
        "need time.",
    ),
    "snowman": (
        "{H} and {f} built a snowman, and he had one wish: {wish}.",
        "A small kindness can make someone happy.|Even a snowman needs friends.|Nice "
        "things come back.",
    ),
    "concert": (
        "{H} played {plays} at {event} and was afraid, but {f} helped {h.him}.",
        "A friend in the first row helps a lot.|Go on after a mistake.|Play for those who "
        "love you.",
    ),
    "bridge": (
        "The bridge was gone, and {h} and {f} began to build a new one, until everyone helped.",
        "Someone has to begin.|Together, we can build anything.|Do not wait for the others.",
    ),
    "moon": (
        "{H} the {h.noun} thought that the moon had fallen into the pond, but it was only "
        "a mirror.",
        "Look up before you worry.|Things are not always what they seem.|It is good to ask "
        "a friend.",
    ),
    "baby": (
        "{H} got a baby {f.noun} named {f}, felt alone, and then made the baby laugh.",
        "There is enough love for everyone.|Everyone is needed.|Small children need big ones.",
    ),
    "star": (
        "{H} found a little star that had fallen from the sky and helped it to go home.",
        "Love means to let go.|Help those who are far from home.|Everyone belongs somewhere.",
    ),
}
# What the hero does, as a wish for a story names it.
DEEDS = {
    "lost": "who lost {h.his} {o}",
    "rescue": "who found a little {x.noun}|who helped {a x.noun}",
    "sharing": "who learned to share|who did not want to share",
    "fear": "who was afraid of {fear}|who became brave",
    "cooking": "who made {adish}|who made {dish} for {g}",
    "storm": "who walked into {weather}|who had to hide from {weather}",
    "honest": "who broke a {b}|who told the truth",
    "learning": "who wanted to {skill}|who learned to {skill}",
    "treasure": "who found a treasure|who found an old map",
    "wish": "who got a wish|who met {fairy}",
    "different": "who wanted to be {want}",
    "newcomer": "who had no friends|who was new|who found a friend",
    "stuck": "whose {o} was {where}",
    "seed": "who planted a seed|who had to wait",
    "race": "who won a race",
    "night": "who could not sleep|who heard a strange sound",
    "kindness": "who had {coins} coins|who was kind to {old}",
    "surprise": "who got a surprise|who had a birthday",
    "monster": "who met {a beast}|who was not afraid of the {beast}",
    "chores": "who had to {job}|who had a lot of work",
    "mystery": "who solved a mystery|who looked for a thief",
    "invention": "who built {made}|who liked to build things",
    "snowman": "who built a snowman",
    "concert": "who played {plays}|who was afraid to play {plays}",
    "bridge": "who built a bridge",
    "moon": "who wanted to save the moon|who saw the moon in the pond",
    "baby": "who got a baby {f.noun}",
    "star": "who found a star|who helped a star",
}
