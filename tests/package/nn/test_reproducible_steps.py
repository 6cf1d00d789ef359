"""invar.reproducible() around functions that stop on their way, generators and coroutines: each
step is in the context, and nothing else is."""

import asyncio

import pytest
from built import invar

inside = invar.reproducible.is_active


def test_as_a_decorator_without_parentheses():
    class Owner:
        @invar.reproducible
        def method(self, a, *, b=1):
            """Its text."""
            return a + b, inside()

    assert Owner().method(1, b=2) == (3, True) and Owner.method.__doc__ == "Its text."
    assert not inside()
    with pytest.raises(TypeError, match="int is no function"):
        invar.reproducible(3)


@pytest.mark.parametrize("decorator", [invar.reproducible, invar.reproducible()])
def test_each_step_of_a_generator(decorator):
    found = []

    @decorator
    def steps():
        try:
            found.append((yield inside()))
            yield inside()
        except KeyError:
            yield inside()
        finally:
            found.append(inside())
        return 7

    made = steps()
    assert next(made) and not inside()
    assert made.send("sent") and not inside()
    assert made.throw(KeyError()) and not inside()
    with pytest.raises(StopIteration, match="7"):
        next(made)
    closed = steps()
    next(closed)
    closed.close()
    assert found == ["sent", True, True] and not inside()


def test_each_step_of_a_coroutine():
    @invar.reproducible
    async def steps():
        found = [inside()]
        for _ in range(3):
            await asyncio.sleep(0)
            found.append(inside())
        return found

    async def others():
        found = []
        for _ in range(4):
            await asyncio.sleep(0)
            found.append(inside())
        return found

    async def both():
        return await asyncio.gather(steps(), others(), steps())

    assert asyncio.run(both()) == [[True] * 4, [False] * 4, [True] * 4]

    async def pieces():
        yield 1

    with pytest.raises(TypeError, match="pieces is an asynchronous generator"):
        invar.reproducible(pieces)


def test_contexts_that_end_in_another_order():
    """Of two coroutines: the one that entered first leaves first, and the other is still inside."""

    async def steps(before, within):
        for _ in range(before):
            await asyncio.sleep(0)
        with invar.reproducible():
            for _ in range(within):
                await asyncio.sleep(0)
            return inside()

    async def both():
        return await asyncio.gather(steps(0, 2), steps(1, 5))

    assert asyncio.run(both()) == [True, True]
    assert not inside()
