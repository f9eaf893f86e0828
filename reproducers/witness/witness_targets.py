"""What the witness looks for in torch and in transformers: modules, names and functions, by the state they belong to.

Nothing here says that a torch has it: what is found is told as `watched`, what is not as `unknown`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TRACING, COMPILING, TRACE, COMPILE = "fx-tracing", "compiling", "trace", "compile"
LOCK, CONFIG, LIMIT, ANNOTATION = "compile-lock", "dynamo-config", "recompile-limit", "fx-annotation"
KERNEL, BACKWARD, UNFUSED = "kernel-load", "backward", "unfused-attention"
PATCHER, METRICS, STANDING, UNCAUGHT = "fx-patcher", "compile-metrics", "standing", "uncaught-exception"
ANNOTATE = "annotate"
"""The function that writes annotations of a caller's own."""
UNLOAD = "close"
"""The method that unloads a kernel."""
RAISED = "raised"
"""What obeying came to: the call failed."""

CONFIG_MODULE = "torch._dynamo.config"
CONFIG_NAMES = ("recompile_limit", "cache_size_limit", "error_on_nested_fx_trace")
"""Of dynamo's configuration. `cache_size_limit` is an alias where `recompile_limit` exists, and then left out."""


@dataclass(frozen=True)
class Function:
    """A function or method to follow, by the end of its qualified name (without ``<locals>``)."""

    state: str
    name: str
    how: str
    """``span``: enter and leave; ``opens``, ``closes``: the two ends of what one method enters and another one leaves;
    ``call``: entered; ``after``: left; ``returns``: what it returns."""
    arguments: tuple[str, ...] = ()
    """Of its parameters, those that the witness is given."""
    instead: str = ""
    """Another function of the module that some torch has in its place."""


@dataclass(frozen=True)
class Guard:
    """In the function ``name`` a branch taken when a call of one of ``asks`` is true: the thread obeyed."""

    state: str
    name: str
    asks: tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """In the function ``name`` a look-up ``x.….get(key)``: where it finds something true, the thread obeyed."""

    state: str
    name: str
    key: str


@dataclass(frozen=True)
class Module:
    """What to follow in one module."""

    flags: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """State, and the pattern of the names of module-level flags that hold it."""
    objects: tuple[tuple[str, str], ...] = ()
    """State and name of a global object whose replacement by another thread than the last one matters."""
    locks: tuple[tuple[str, str], ...] = ()
    functions: tuple[Function, ...] = ()
    guards: tuple[Guard, ...] = ()
    keys: tuple[Key, ...] = ()
    instead: str = ""
    """Another module that some torch has in its place."""


_LAUNCHER = (
    Function(KERNEL, "load_kernel", "span", ("self",)),
    Function(KERNEL, "run", "call", ("self",)),
    Function(KERNEL, UNLOAD, "call", ("self",)),
)
_CUDA_LAUNCHER, _TRITON_LAUNCHER = (f"torch._inductor.runtime.static_{kind}_launcher" for kind in ("cuda", "triton"))

MODULES: dict[str, Module] = {
    "torch.fx._symbolic_trace": Module(
        flags=((TRACING, re.compile(r"_is_fx_tracing\w*")),),
        functions=(Function(TRACE, "Tracer.trace", "span"), Function(PATCHER, "_new_patcher", "span")),
    ),
    "torch.compiler": Module(flags=((COMPILING, re.compile(r"_is_compiling\w*")),)),
    "torch._dynamo.eval_frame": Module(
        functions=(Function(CONFIG, "compile_wrapper", "call"),),
        guards=(Guard(TRACING, "compile_wrapper", ("is_fx_symbolic_tracing", "is_fx_tracing")),),
    ),
    "torch._dynamo.callback": Module(
        functions=(Function(COMPILE, "install_callbacks", "span", ("trigger", "compile_id")),)
    ),
    "torch._dynamo.convert_frame": Module(locks=((LOCK, "compile_lock"),)),
    "torch._dynamo.cache_size": Module(
        functions=(
            Function(LIMIT, "exceeds_recompile_limit", "returns", instead="exceeds_cache_size_limit"),
            Function(LIMIT, "exceeds_cache_size_limit", "returns", instead="exceeds_recompile_limit"),
        )
    ),
    "torch._dynamo.metrics_context": Module(
        functions=(
            Function(METRICS, "MetricsContext.__enter__", "opens", ("self",)),
            Function(METRICS, "MetricsContext.__exit__", "closes", ("self",)),
        )
    ),
    "torch.utils._config_module": Module(
        functions=(Function(CONFIG, "ConfigModule.__setattr__", "after", ("self", "name", "value")),)
    ),
    "torch.fx.traceback": Module(
        objects=((ANNOTATION, "current_meta"),),
        functions=(
            Function(ANNOTATION, ANNOTATE, "span", ("annotation_dict",)),
            Function(ANNOTATION, "preserve_node_meta", "span"),
            Function(ANNOTATION, "get_current_meta", "returns"),
        ),
    ),
    "torch._inductor.graph": Module(keys=(Key(ANNOTATION, "GraphLowering.call_function", "fallback_to_eager"),)),
    _CUDA_LAUNCHER: Module(functions=_LAUNCHER, instead=_TRITON_LAUNCHER),
    _TRITON_LAUNCHER: Module(functions=_LAUNCHER, instead=_CUDA_LAUNCHER),
    "torch._inductor.runtime.triton_heuristics": Module(
        functions=(Function(KERNEL, "CachingAutotuner.autotune_to_one_config", "span", ("self",)),)
    ),
    "torch._inductor.codecache": Module(
        functions=(Function(KERNEL, "PyCodeCache.load_by_key_path", "span", ("path",)),)
    ),
    "torch._functorch._aot_autograd.runtime_wrappers": Module(
        functions=(Function(BACKWARD, "CompiledFunction.backward", "span"),)
    ),
    "torch._higher_order_ops.flex_attention": Module(functions=(Function(UNFUSED, "math_attention", "call"),)),
    "transformers.integrations.flex_attention": Module(
        guards=(Guard(COMPILING, "compile_friendly_flex_attention", ("is_torchdynamo_compiling", "is_compiling")),)
    ),
}


@dataclass(frozen=True)
class Found:
    """A piece of state as it was found."""

    state: str
    where: str
    how: str
