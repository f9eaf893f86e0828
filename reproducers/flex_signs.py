"""Which path transformers' flex attention takes, call by call.

Part of compile_race; nothing here is a reproducer.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from condition import CannotRunHere

Function = Callable[..., Any]


def flex_library() -> Any:
    """transformers' module with its flex attention.

    Raises:
        CannotRunHere: there is none.
    """
    try:
        return importlib.import_module("transformers.integrations.flex_attention")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "transformers":
            raise
        raise CannotRunHere(f"pattern=flex-choice needs transformers 4.52 or newer: {error}") from error


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """``module.name`` is ``value`` for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


class Signs:
    """How transformers' flex attention ran, by two counters kept per thread.

    ``library_choice``: transformers called the raw ``flex_attention`` instead of its compiled one.
    ``math_attention``: torch's unfused implementation was entered, unless from the graph compiled for the library:
    under aot_eager that graph is made of eager operators, and its attention is that very implementation.

    Raises:
        CannotRunHere: this transformers compiles its flex attention in a way that is not known here.
    """

    def __init__(self, torch: Any, library: Any, backend: str) -> None:
        self._here = threading.local()
        if not hasattr(library, "WrappedFlexAttention") or not hasattr(library, "compile_friendly_flex_attention"):
            raise CannotRunHere("pattern=flex-choice needs transformers 4.52 or a newer one that works like it")
        # The library compiles its attention when the singleton is made: here, before the raw function is wrapped, so
        # that dynamo traces what it would trace without this reproducer.
        with replaced(torch, "compile", functools.partial(torch.compile, backend=self._marking(backend))):
            library.WrappedFlexAttention(False)
        self.attention: Function = library.compile_friendly_flex_attention
        operator = importlib.import_module("torch._higher_order_ops.flex_attention")
        places = {"math_attention": (operator, "math_attention"), "library_choice": (library, "flex_attention")}
        self.names = [name for name, (module, attribute) in places.items() if hasattr(module, attribute)]
        for name in self.names:
            module, attribute = places[name]
            setattr(module, attribute, self._counted(name, getattr(module, attribute)))

    def _marking(self, backend: str) -> Function:
        """The backend, with a mark on the calling thread while a graph that it compiled runs."""
        compiler = importlib.import_module("torch._dynamo.backends.registry").lookup_backend(backend)

        def compile_graph(graph: Any, inputs: Any) -> Function:
            inner = compiler(graph, inputs)

            def run(*values: Any) -> Any:
                self._here.in_graph = True
                try:
                    return inner(*values)
                finally:
                    self._here.in_graph = False

            return run

        return compile_graph

    def _counted(self, name: str, function: Function) -> Function:
        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if not getattr(self._here, "in_graph", False):
                setattr(self._here, name, getattr(self._here, name, 0) + 1)
            return function(*args, **kwargs)

        return counted

    def counts(self) -> dict[str, int]:
        """The counters of the calling thread."""
        return {name: getattr(self._here, name, 0) for name in self.names}
