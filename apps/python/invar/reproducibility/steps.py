"""Functions that stop on their way, generators and coroutines: a decorator's context is that of
each step."""

import functools
import inspect
import types


def decorated(function, context):
    """Such a function with each of its steps in a context of this class; None: it is another."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args, **kwargs):
            return (yield from stepped(function(*args, **kwargs), context))

        return generator
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args, **kwargs):
            return await stepped(function(*args, **kwargs), context)

        return coroutine
    if inspect.isasyncgenfunction(function):
        raise TypeError(
            f"reproducible: {function.__name__} is an asynchronous generator: decorate what it awaits"
        )
    return None


@types.coroutine
def stepped(inner, context):
    """What `inner` yields and returns, each of its steps in a context."""
    step, given = inner.send, None
    while True:
        try:
            with context():
                found = step(given)
        except StopIteration as end:
            return end.value
        try:
            step, given = inner.send, (yield found)
        except GeneratorExit:
            with context():
                inner.close()
            raise
        except BaseException as error:
            step, given = inner.throw, error
