"""Talks in which the model calls a tool, reads what it answers, and says it."""

import words as known

from grammar import capital, say

CITIES = "Paris London Berlin Rome Madrid Oslo Tokyo Cairo Lima Delhi Vienna Boston Dublin Athens".split()
SAID = ("the time", "the clock", "the hour")


def function(name, description, **properties):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {k: {"type": v} for k, v in properties.items()},
                "required": list(properties),
            },
        },
    }


def clock(d):
    city = d.pick(CITIES)
    hour, minute = d.below(24), d.below(60)
    time = f"{hour:02}:{minute:02}"
    if d.chance(0.5):
        name = d.pick(["get_time", "clock", "current_time", "time_now"])
        return (
            function(
                name,
                d.pick(
                    ["Returns the current time", "Gives the time of day", "Says what time it is"]
                ),
            ),
            {},
            say(
                d,
                "[What time is it|What time is it now|Can you tell me the time|How late is "
                "it|Tell me the time][?||, please]",
            ),
            time,
            d.pick([f"It is {time}.", f"It is {time} now.", f"The time is {time}."]),
        )
    name = d.pick(["get_time", "city_time", "time_in_city", "clock"])
    return (
        function(
            name,
            d.pick(["Returns the time in a city", "Gives the current time of a city"]),
            city="string",
        ),
        {"city": city},
        say(
            d,
            "[What time is it in {c}|Tell me the time in {c}|How late is it in {c}|Do you "
            "know the time in {c}][?|]",
            c=city,
        ),
        time,
        d.pick([f"In {city}, it is {time}.", f"It is {time} in {city}."]),
    )


def calculator(d):
    sign, word = d.pick([("+", "plus"), ("-", "minus"), ("*", "times"), ("/", "divided by")])
    a, b = d.between(11, 999), d.between(11, 999)
    if sign == "/":
        a, b = b % 40 * 12 + 12, 12
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[sign]
    name = d.pick(["calculator", "calculate", "compute", "calc"])
    return (
        function(
            name,
            d.pick(
                ["Computes an expression", "Calculates the value of an expression", "A calculator"]
            ),
            expression="string",
        ),
        {"expression": f"{a} {sign} {b}"},
        say(
            d,
            "[What is {x}|How much is {x}|Calculate {x}|What's {x}|Compute {x}][?||]",
            x=f"{a} {sign if d.chance(0.5) else word} {b}",
        ),
        str(value),
        d.pick([f"{a} {word} {b} is {value}.", f"{a} {sign} {b} = {value}.", f"It is {value}."]),
    )


def weather(d):
    city, sky, degrees = d.pick(CITIES), d.pick(known.WEATHER), d.between(1, 35)
    name = d.pick(["get_weather", "weather", "weather_report", "current_weather"])
    return (
        function(
            name,
            d.pick(["Returns the weather in a city", "Gives the weather of a city"]),
            city="string",
        ),
        {"city": city},
        say(
            d,
            "[What is the weather in {c}|How is the weather in {c}|Is it cold in "
            "{c}|What's the weather like in {c}|Weather in {c}][?|]",
            c=city,
        ),
        f'{{"weather": "{sky}", "degrees": {degrees}}}',
        d.pick(
            [
                f"It is {sky} in {city}, with {degrees} degrees.",
                f"In {city}, it is {sky} and {degrees} degrees.",
            ]
        ),
    )


def dice_roll(d):
    sides = d.pick([6, 6, 8, 12, 20])
    value = d.between(1, sides)
    name = d.pick(["roll_dice", "dice", "roll", "random_number"])
    return (
        function(
            name,
            d.pick(["Rolls a die with some sides", "Returns a random number"]),
            sides="integer",
        ),
        {"sides": sides},
        say(
            d,
            "[Roll a die with {n} sides|Roll a {n} sided die|Throw a die with {n} "
            "sides|Give me a random number from 1 to {n}][.|]",
            n=str(sides),
        ),
        str(value),
        d.pick([f"The die shows {value}.", f"You got {value}.", f"It is {value}."]),
    )


def reminder(d):
    what = d.pick(
        [
            "water the plants",
            "feed the cat",
            "call Grandma",
            "buy bread",
            "read a story",
            "take a break",
            "clean the kitchen",
        ]
    )
    time = f"{d.between(6, 22):02}:{d.pick([0, 15, 30, 45]):02}"
    name = d.pick(["set_reminder", "reminder", "remind_me", "add_reminder"])
    return (
        function(
            name,
            d.pick(["Sets a reminder", "Reminds of something at a time"]),
            text="string",
            time="string",
        ),
        {"text": what, "time": time},
        say(
            d,
            "[Remind me to {w} at {t}|Please remind me to {w} at {t}|Set a reminder to {w} "
            "at {t}|At {t}, remind me to {w}][.|]",
            w=what,
            t=time,
        ),
        d.pick(["ok", "done", '{"status": "ok"}']),
        d.pick(
            [
                f"I will remind you to {what} at {time}.",
                f"Done. At {time}, I will remind you to {what}.",
            ]
        ),
    )


def search(d):
    thing = d.pick(
        [
            "dragons",
            "the moon",
            "volcanoes",
            "trains",
            "honey",
            "castles",
            "whales",
            "robots",
            "chocolate",
            "the sea",
            "stars",
            "bridges",
        ]
    )
    name = d.pick(["search", "web_search", "lookup", "find"])
    found = {
        "dragons": "Dragons are animals of old tales",
        "the moon": "The moon goes around the earth",
        "volcanoes": "Volcanoes are mountains with fire inside",
        "trains": "Trains run on rails",
        "honey": "Bees make honey from nectar",
        "castles": "Castles have thick walls of stone",
        "whales": "Whales are the largest animals",
        "robots": "Robots are machines that can move",
        "chocolate": "Chocolate is made from cocoa beans",
        "the sea": "The sea is full of salt water",
        "stars": "Stars are very hot and far away",
        "bridges": "Bridges lead over rivers",
    }[thing]
    return (
        function(
            name, d.pick(["Searches for a text", "Finds facts about something"]), query="string"
        ),
        {"query": thing},
        say(
            d,
            "[Search for {t}|Look up {t}|Find something about {t}|What can you find about {t}][.|]",
            t=thing,
        ).replace("about " + thing + ".", "about " + thing + "."),
        found + ".",
        found + ".",
    )


TOOLS = (clock, calculator, weather, dice_roll, reminder, search)


def tool_talk(d, small):
    """(tools, messages): one or two turns with the first tool, maybe an ordinary one too."""
    made = [f(d) for f in d.picks(TOOLS, d.pick([1, 1, 2, 2, 3]))]
    names = set()
    made = [
        m
        for m in made
        if not (m[0]["function"]["name"] in names or names.add(m[0]["function"]["name"]))
    ]
    tools, messages = [m[0] for m in made], []
    turns = [made[0]] + ([made[1]] if len(made) > 1 and d.chance(0.4) else [])
    if len(tools) > 1 and d.chance(0.5):
        tools = d.picks(tools, len(tools))
    if d.chance(0.3):
        turns.insert(d.below(len(turns) + 1), None)
    for turn in turns:
        if turn is None:
            for ask, answer in small(d):
                messages += [
                    {"role": "user", "content": ask},
                    {"role": "assistant", "content": answer},
                ]
            continue
        tool, arguments, ask, result, answer = turn
        messages += [
            {"role": "user", "content": capital(ask)},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "type": "function",
                        "function": {"name": tool["function"]["name"], "arguments": arguments},
                    }
                ],
            },
            {"role": "tool", "content": result},
            {"role": "assistant", "content": answer},
        ]
    return tools, messages
