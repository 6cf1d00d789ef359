"""A session with one language model: prompts -> answers with receipts."""

import os
import threading
from typing import Any

from invar import _native
from invar.generation import Generation, KeptModel
from invar.requests import generate


class InferenceSession:
    """A language model with the settings of its answers.

        session = invar.InferenceSession("org/name", device="cuda")
        answer = session.complete(prompt="Once", max_new_tokens=20)
        print(answer.text, answer.receipt["receipt_hash"])

    Example:
        >>> session = invar.InferenceSession("models/shakespeare-4m", max_new_tokens=20)
        >>> session.complete("ROMEO:").text  # doctest: +SKIP

    Raises invar.BadInput and invar.NotCovered as invar.generate() does, TypeError for an argument
    that it does not have.

    model: as for invar.generate(), whose other arguments (device, threads, operation_set, sampling,
    ...) are defaults for every call here.

    The model is found, compiled and loaded by the first call and stays loaded; a call that asks for
    it in another way, such as on another device, loads it again. What one answer has computed of
    the beginning of the next prompt is not computed again: keys and values stay, and states of
    fixed size go back to a copy from the end of an earlier prompt. Neither changes a bit. Threads
    may share a session, which computes one answer at a time."""

    def __init__(self, model: str | os.PathLike[str], **defaults: Any) -> None:
        if os.path.splitext(str(model))[1] == ".onnx":
            raise _native.BadInput(
                f"model {model}: a session answers prompts with a checkpoint; invar.compile() runs an "
                f"ONNX model"
            )
        self.model, self.defaults = model, self._checked(defaults)
        self._kept, self._lock = None if model is None else KeptModel(model), threading.Lock()

    @staticmethod
    def _checked(arguments: dict[str, Any]) -> dict[str, Any]:
        known = generate.__kwdefaults__
        for name in arguments:
            if name not in known:
                raise TypeError(f"InferenceSession: {name!r} is no argument of invar.generate()")
            if name in ("messages", "tools", "enable_thinking", "previous", "audio", "audio_start"):
                raise _native.BadInput(f"{name}: it belongs to a call of complete()")
        return dict(arguments)

    def complete(
        self,
        prompt: str | None = None,
        *,
        messages: list[dict[str, Any]] | dict[str, Any] | None = None,
        tools: list[dict[str, Any]] | None = None,
        max_new_tokens: int | None = None,
        enable_thinking: bool | None = None,
        **arguments: Any,
    ) -> Generation:
        """The answer to a prompt, or to the messages of a chat: an object with `.text`, `.tokens`,
        `.receipt` and `.finish_reason`. It is computed as a whole before it is returned.

        Raises BadInput, NotCovered or Failed as invar.generate() does, of which `arguments` may be
        any."""
        given = {**self.defaults, **arguments}
        if max_new_tokens is not None:
            given["max_new_tokens"] = max_new_tokens
        with self._lock:
            try:
                answer = generate(
                    self._kept,
                    prompt,
                    messages=messages,
                    tools=tools,
                    enable_thinking=enable_thinking,
                    **given,
                )
                answer.text  # computes it, so that errors are raised here
            except _native.Failed:  # the files of the model have changed, or a worker is lost
                if self._kept is not None:
                    self._kept.unload()
                raise
        return answer

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or what another process gets, loads the model at its own first call."""
        return {"model": self.model, "defaults": self.defaults}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"], **state["defaults"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"invar.InferenceSession({str(self.model)!r})"
