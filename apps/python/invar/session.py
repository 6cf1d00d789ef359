"""A session with one language model: prompts -> answers with receipts."""

from invar import _native
from invar.generation import Generation, generate


class InferenceSession:
    """A language model with the settings of its answers.

        session = invar.InferenceSession("org/name", device="cuda")
        answer = session.complete(prompt="Once", max_new_tokens=20)
        print(answer.text, answer.receipt["receipt_hash"])

    model: as for invar.generate(), whose other arguments (device, threads, operation_set, sampling,
    ...) are defaults for every call here."""

    def __init__(self, model, **defaults):
        self.model, self.defaults = model, self._checked(defaults)

    @staticmethod
    def _checked(arguments):
        known = generate.__kwdefaults__
        for name in arguments:
            if name not in known:
                raise TypeError(f"InferenceSession: {name!r} is no argument of invar.generate()")
            if name in ("messages", "tools", "enable_thinking", "previous"):
                raise _native.BadInput(f"{name}: it belongs to a call of complete()")
        return dict(arguments)

    def complete(
        self,
        prompt: str | None = None,
        *,
        messages: list | dict | None = None,
        tools: list | None = None,
        max_new_tokens: int | None = None,
        enable_thinking: bool | None = None,
        **arguments,
    ) -> Generation:
        """The answer to a prompt, or to the messages of a chat: an object with `.text`, `.tokens`,
        `.receipt` and `.finish_reason`. It is computed as a whole before it is returned.

        Raises BadInput, NotCovered or Failed as invar.generate() does, of which `arguments` may be
        any."""
        given = {**self.defaults, **arguments}
        if max_new_tokens is not None:
            given["max_new_tokens"] = max_new_tokens
        answer = generate(
            self.model,
            prompt,
            messages=messages,
            tools=tools,
            enable_thinking=enable_thinking,
            **given,
        )
        answer.text  # computes it, so that errors are raised here
        return answer

    def __repr__(self):
        return f"invar.InferenceSession({str(self.model)!r})"
