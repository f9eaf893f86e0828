"""Who shares what, told from sources in the style of each generation of torch."""

from __future__ import annotations

import pytest

from bisect_env.inspection.configs import CONFIG
from bisect_env.inspection.facts import Fact, facts
from bisect_env.inspection.records import Scope
from tests.support.sources import Texts

GLOBAL_FLAG = """\
_is_fx_tracing_flag = False

def is_fx_tracing():
    return _is_fx_tracing_flag

class Tracer:
    def trace(self, root):
        global _is_fx_tracing_flag
        old = _is_fx_tracing_flag
        _is_fx_tracing_flag = True
        try:
            return self.graph(root)
        finally:
            _is_fx_tracing_flag = old
"""
THREAD_FLAG = """\
import functools
import logging
import threading

log = logging.getLogger(__name__)
_is_fx_tracing_tls = threading.local()

def _set_is_fx_tracing(value: bool) -> None:
    _is_fx_tracing_tls.flag = value

def _get_is_fx_tracing() -> bool:
    return getattr(_is_fx_tracing_tls, "flag", False)

@functools.lru_cache
def is_fx_tracing_warning() -> None:
    log.warning("is_fx_tracing is true for export too")

def is_fx_tracing() -> bool:
    is_fx_tracing_warning()
    return _get_is_fx_tracing()

class Tracer:
    def trace(self, root):
        _set_is_fx_tracing(True)
"""
CONTEXT_FLAG = """\
from contextvars import ContextVar

_tracing: ContextVar[bool] = ContextVar("tracing", default=False)

def is_fx_tracing():
    return _tracing.get()
"""
COMPILING = """\
import contextlib
import torch

_is_compiling_flag: bool = False

def is_compiling() -> bool:
    if torch.jit.is_scripting():
        return False
    else:
        return _is_compiling_flag
"""
SESSION = """\

@contextlib.contextmanager
def _compile_session_context():
    global _is_compiling_flag
    old = _is_compiling_flag
    try:
        _is_compiling_flag = True
        yield
    finally:
        _is_compiling_flag = old
"""
IDLE_DYNAMO = """\
def compile_inner(code, hooks):
    return transform(code)
"""
DYNAMO = """\
import contextlib
import torch

def compile_inner(code, hooks):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.compiler._compile_session_context())
        return transform(code)
"""
STORING_DYNAMO = """\
import torch

def compile_inner(code, hooks):
    torch.compiler._is_compiling_flag = True
"""
PLAIN_CONFIG = """\
class _ConfigEntry:
    default: object
    user_override: object = UNSET

    def __init__(self, config):
        self.default = config.default
"""
CONTEXT_CONFIG = """\
from contextvars import ContextVar

class _ConfigEntry:
    user_override: ContextVar[object]

    def __init__(self, config, name):
        self.user_override = ContextVar(name, default=UNSET)
"""
FLAG, COMPILER, DYNAMO_MODULE, CONFIG_MODULE = (
    "torch.fx._symbolic_trace",
    "torch.compiler",
    "torch._dynamo.convert_frame",
    CONFIG[0],
)
OLD = {FLAG: GLOBAL_FLAG, COMPILER: COMPILING, DYNAMO_MODULE: IDLE_DYNAMO, CONFIG_MODULE: PLAIN_CONFIG}


@pytest.mark.parametrize(
    ("changed", "tracing", "held", "config"),
    [
        ({}, Scope.PROCESS, False, Scope.PROCESS),
        ({CONFIG_MODULE: CONTEXT_CONFIG}, Scope.PROCESS, False, Scope.CONTEXT),
        ({COMPILER: COMPILING + SESSION, DYNAMO_MODULE: DYNAMO}, Scope.PROCESS, True, Scope.PROCESS),
        ({COMPILER: COMPILING + SESSION}, Scope.PROCESS, False, Scope.PROCESS),
        ({DYNAMO_MODULE: STORING_DYNAMO}, Scope.PROCESS, True, Scope.PROCESS),
        ({FLAG: THREAD_FLAG}, Scope.THREAD, False, Scope.PROCESS),
        ({FLAG: CONTEXT_FLAG}, Scope.CONTEXT, False, Scope.PROCESS),
    ],
    ids=[
        "2.8-2.11",
        "2.12",
        "2.13",
        "a setter that dynamo does not use",
        "dynamo sets it",
        "2.14",
        "a context variable",
    ],
)
def test_each_generation(changed: dict[str, str], tracing: Scope, held: bool, config: Scope) -> None:
    found = facts(Texts(OLD | changed))
    assert (found.tracing.scope, found.compiling.scope, found.compiling.held) == (tracing, Scope.PROCESS, held)
    assert found.config.scope is config


def test_what_was_read_is_named() -> None:
    found = facts(Texts(OLD | {COMPILER: COMPILING + SESSION, DYNAMO_MODULE: DYNAMO}))
    assert found.tracing.why == "torch.fx._symbolic_trace._is_fx_tracing_flag"
    assert found.compiling.why == (
        "torch.compiler._is_compiling_flag, which torch._dynamo.convert_frame sets by _compile_session_context"
    )
    assert found.config.why == "torch.utils._config_module._ConfigEntry.user_override"


@pytest.mark.parametrize(
    ("module", "text", "why"),
    [
        (FLAG, "def other(): pass\n", "torch.fx._symbolic_trace.is_fx_tracing returns no name of its module"),
        (FLAG, "def is_fx_tracing(:\n", "torch/fx/_symbolic_trace.py, line 1, is not Python as it is understood here"),
        (
            COMPILER,
            "def is_compiling():\n    return False\n",
            "torch.compiler.is_compiling returns no name of its module",
        ),
        (CONFIG_MODULE, "_config = {}\n", "torch.utils._config_module has no _ConfigEntry"),
        (CONFIG_MODULE, "class _ConfigEntry:\n    value = 0\n", f"{'.'.join(CONFIG[:2])} has no user_override"),
    ],
)
def test_what_is_unknown_says_why(module: str, text: str, why: str) -> None:
    found = facts(Texts(OLD | {module: text}))
    told = {FLAG: found.tracing, COMPILER: found.compiling, CONFIG_MODULE: found.config}[module]
    assert told == Fact(None, why)


MASKS = "torch.nn.attention.flex_attention"
TRACEBACK = "torch.fx.traceback"
LOWERING = "torch._inductor.graph"
ANNOTATING = {
    MASKS: "def ordered(x):\n    with torch.fx.traceback.annotate({'to_eager': True}):\n        return sort(x)\n",
    TRACEBACK: (
        "current_meta: dict[str, Any] = {}\n\n"
        "def annotate(given):\n    global current_meta\n    current_meta = {**current_meta, **given}\n"
    ),
    LOWERING: "class Lowering:\n    def call(self, n):\n        return n.meta.get('custom', {}).get('to_eager')\n",
}


@pytest.mark.parametrize(
    ("changed", "masks"),
    [
        (
            {},
            Fact(
                Scope.PROCESS, f"{TRACEBACK}.current_meta, where {MASKS} writes to_eager, which {LOWERING} obeys", True
            ),
        ),
        (
            {LOWERING: "key = 'another'\n"},
            Fact(Scope.PROCESS, f"{TRACEBACK}.current_meta, where {MASKS} writes to_eager", held=False),
        ),
        ({MASKS: "def ordered(x):\n    return sort(x)\n"}, Fact(Scope.ABSENT, f"{MASKS} annotates nothing", False)),
        (
            {TRACEBACK: "def annotate(given):\n    pass\n"},
            Fact(None, f"{TRACEBACK}.annotate stores in no name of its module"),
        ),
        (
            {TRACEBACK: "import threading\ncurrent_meta = threading.local()\n\ndef annotate(given):\n"
             "    global current_meta\n    current_meta.custom = given\n"},
            Fact(
                Scope.THREAD, f"{TRACEBACK}.current_meta, where {MASKS} writes to_eager, which {LOWERING} obeys", True
            ),
        ),
    ],
    ids=["2.13", "not obeyed", "up to 2.12", "not understood", "a thread's own"],
)  # fmt: skip
def test_what_making_masks_writes(changed: dict[str, str], masks: Fact) -> None:
    assert facts(Texts(OLD | ANNOTATING | changed)).masks == masks


@pytest.mark.parametrize("absent", [MASKS, TRACEBACK, LOWERING])
def test_masks_of_a_torch_that_lacks_a_part_are_not_known(absent: str) -> None:
    texts = {name: text for name, text in (OLD | ANNOTATING).items() if name != absent}
    assert facts(Texts(texts)).masks == Fact(None, f"there is no {absent}")


def test_no_torch_and_compiled_torch() -> None:
    found = facts(Texts({"numpy": ""}))
    assert [fact.why for fact in (found.tracing, found.compiling, found.config)] == [
        f"there is no {name}" for name in (FLAG, COMPILER, CONFIG_MODULE)
    ]
    compiled = facts(Texts({name: text for name, text in OLD.items() if name != FLAG}, compiled=(FLAG,)))
    assert compiled.tracing == Fact(None, f"{FLAG} is compiled code")
    assert compiled.compiling.scope is Scope.PROCESS


def test_a_dynamo_that_is_not_there_leaves_the_flag_unknown() -> None:
    texts = {name: text for name, text in OLD.items() if name != DYNAMO_MODULE}
    assert facts(Texts(texts)).compiling == Fact(None, f"there is no {DYNAMO_MODULE}")
