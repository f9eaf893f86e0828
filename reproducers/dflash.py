"""Several threads in one process, each training a small DFlash drafter through torch.compile(flex_attention).

Each thread has a model, an AdamW optimizer and a CUDA stream of its own. The query width differs from step to step (as
random anchors make it), the block mask is rebuilt every step, and a step is forward + backward + update. What is
reported: failures, compile windows, sequence tokens a second, peak memory beside what fused and unfused attention
should take, which path the attention took in every thread, its error against a float64 reference, and the losses.

  barrier      all threads start together on a cold compiler; who is warm first goes on calling while the rest compile
  staggered    the same, each thread `stagger` seconds after the one before
  hot          warmed up one after another; then w0 compiles fresh attention while the others go on calling theirs
  mixed        as barrier; then each thread in turn compiles `fresh` ordinary functions while all others call their warm
               attention as fast as it goes

After that come the timed steps, all threads together, in every pattern. With `repeats` all of it is done again, with
the compiled state reset and a new cache folder. A token is a token of the training sequences (batch x length a step),
as training logs count. The side `rounds` does the cold steps and then timed rounds of `steps` steps only.

Mitigations: warmup (every shape in one thread first), constant-shapes (all batches padded to one width), lock-creation
(a lock where the compiled object is made: what the incident's trainer had), lock-first-call (a lock round each thread's
first call of a shape, its backward not included), lock-all (a lock round every forward + backward), per-thread-config
(dynamo's configuration set in each thread), no-nested-trace-error (dynamo's error switched off), thread-aware-check
(dynamo asks whether the calling thread traces, not any). See dflash_mitigations.py for the lines of each.

On a CPU flex attention has no backward: attention runs forward only, so its projections get no gradient and all the
rest trains. Use `--backend aot_eager` there: inductor compiles C++ for half a minute. Peak memory and kernels are not
seen on a CPU. With the backend `eager` all attention is unfused, on purpose.

  python reproducers/dflash.py                               three threads, on the GPU if there is one
  python reproducers/dflash.py --side serial                 the control: the same work in one thread
  python reproducers/dflash.py --attention transformers --pattern mixed
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dflash_kernels as kernels
import dflash_plan as plan
import dflash_repeats as repetition
import dflash_topology as topology
import protocol
from condition import CannotRunHere

OPTIONS = {
    "threads": {"default": 3, "min": 1, "max": 64, "help": "worker threads, each with a drafter"},
    "pattern": {
        "default": "barrier",
        "choices": ["barrier", "hot", "mixed", "staggered"],
        "help": "who compiles while who calls, see above",
    },
    "attention": {
        "default": "torch",
        "choices": ["torch", "transformers"],
        "help": "plain torch, or transformers' Qwen3 modules and flex attention path",
    },
    "mitigation": {
        "default": "none",
        "choices": [
            "none",
            "warmup",
            "constant-shapes",
            "lock-creation",
            "lock-first-call",
            "lock-all",
            "per-thread-config",
            "no-nested-trace-error",
            "thread-aware-check",
        ],
        "help": "what the trainer does against the race",
    },
    "checkpointing": {
        "default": "none",
        "choices": ["none", "reentrant", "non-reentrant"],
        "help": "activation checkpointing of each layer",
    },
    "device": {"default": "auto", "choices": ["auto", "cpu", "cuda"], "help": "where the drafters are"},
    "size": {
        "default": "auto",
        "choices": ["auto", "tiny", "small", "medium", "qwen3-8b"],
        "help": "dimensions; auto is medium on a GPU and tiny on a CPU",
    },
    "backend": {
        "default": "inductor",
        "choices": ["inductor", "aot_eager", "eager"],
        "help": "backend of torch.compile",
    },
    "steps": {"default": 10, "min": 1, "max": 100000, "help": "timed steps of each thread, of each round"},
    "warm_steps": {"default": 4, "min": 1, "max": 1000, "help": "cold steps before them; every width at least once"},
    "fresh": {
        "default": 2,
        "min": 1,
        "max": 1000,
        "help": "fresh compiles: of w0 in the pattern hot, of every thread in mixed",
    },
    "repeats": {"default": 1, "min": 1, "max": 1000, "help": "times that all is done, each from a cold compiler"},
    "rounds": {"default": 8, "min": 1, "max": 100000, "help": "timed rounds of the side rounds, where none is in turn"},
    "gpus": {"default": 1, "min": 1, "max": 64, "help": "GPUs to spread the threads over"},
    "topology": {
        "default": "drafters",
        "choices": ["drafters", "incident"],
        "help": "a drafter a thread, thread i on GPU i modulo their number; or targets as well, which make the hidden "
        "states on the first GPUs for the drafters on the others",
    },
    "planted": {
        "default": "none",
        "choices": ["none", "dense"],
        "help": "dense: w1 calls uncompiled attention once it is warm, to see whether that is found",
    },
    "stagger": {"default": 1.0, "min": 0.0, "max": 60.0, "help": "seconds between two starts in the pattern staggered"},
    "window": {"default": 0, "min": 0, "max": 65536, "help": "sliding window of all layers but the last; 0: none"},
    "recompile_limit": {
        "default": 0,
        "min": 0,
        "max": 4096,
        "help": "torch._dynamo.config.recompile_limit, set in the main thread as trainers do; 0 leaves it alone (and "
        "is 64 for per-thread-config)",
    },
}


def notes(trial: protocol.Trial, device: str, name: str, layout: topology.Topology) -> None:
    """What the reader of the events must know of this trial."""
    emit = trial.events.emit
    emit("note", key="size", value=name)
    if layout.targets:
        emit("note", key="topology", value=f"targets on {layout.targets}, drafters on {layout.drafters}")
    if device == "cpu":
        left_out = "flex attention's backward (it has none on a CPU), peak memory, kernel names"
        emit("note", key="left_out_on_cpu", value=left_out)
    elif trial.side == "profile" and trial.condition["backend"] != "inductor":
        emit("note", key="kernels", value="only inductor has fused kernels to look for")


def paths(trial: protocol.Trial, threads: list[Any], profiler: Any) -> None:
    """Each thread's path; with what the profiled kernels say of it, where there was a profiler."""
    found: dict[int, Any] = {}
    if profiler is not None:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(trace))
            found = kernels.kernels_by_thread(json.loads(trace.read_text())["traceEvents"])
    for thread in threads:
        attention, name = thread.attention, f"w{thread.index}"
        if attention is None or not attention.calls:
            continue
        signs = {}
        if thread.index in found:
            seen = found[thread.index]
            unfused = kernels.unfused_calls(seen, attention.calls)
            if unfused is not None:
                signs["kernels"] = unfused
            trial.events.emit("note", key=f"kernels_{name}", value=kernels.described(seen, attention.calls))
        elif profiler is not None:
            trial.events.emit("note", key=f"kernels_{name}", value="no kernel of this thread was seen after warm-up")
        thread.report_path(signs)


def memory(trial: protocol.Trial, size: plan.Size, threads: list[Any], layout: topology.Topology) -> None:
    """The peak of the fullest device during the timed steps, and what it should be there."""
    peaks = {thread.lane.device: thread.peak for thread in threads}
    device = max(peaks, key=lambda each: peaks[each])
    if not peaks[device]:
        return
    residents = sum(thread.lane.device == device for thread in threads)
    active = residents if trial.side in protocol.THREADED else 1
    one = plan.memory(size, size.anchors, trial.condition["checkpointing"], 2)
    # A target beside the drafters is not in the prediction.
    predicted = {} if device.index in layout.targets else plan.predicted(one, residents, active)
    trial.events.emit("memory", peak_bytes=peaks[device], predicted=predicted, device=str(device))


def main() -> int:
    """One trial; the exit status."""
    trial = protocol.Trial.begin(OPTIONS, __doc__)
    condition = trial.condition
    with trial.importing():
        import torch

        if condition["attention"] == "transformers":
            import transformers.models.qwen3.modeling_qwen3  # noqa: F401
        import dflash_session as session
    trial.ready()
    device = trial.device()
    visible = torch.cuda.device_count() if device == "cuda" else condition["gpus"]
    if condition["gpus"] > visible:
        trial.skip(f"gpus={condition['gpus']}, and torch sees {visible}")
    if condition["planted"] != "none" and condition["threads"] < 2:
        trial.skip("planted=dense makes w1 dense, and there is only one thread")
    devices = condition["gpus"] if device == "cuda" else 1
    layout = topology.topology(condition["topology"], condition["threads"], devices)
    name, size = plan.size_of(condition["size"], device)
    notes(trial, device, name, layout)
    repeats = repetition.repeats_of(trial)
    try:
        work = session.Session(trial, size, layout, device, repeats)
    except CannotRunHere as error:
        trial.skip(str(error))

    profiler = None
    if trial.side == "profile" and device == "cuda" and condition["backend"] == "inductor":
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])

    def after() -> None:
        work.close()
        if profiler is None:
            paths(trial, work.threads, None)
        if device == "cuda":
            memory(trial, size, work.threads, layout)

    with profiler or nullcontext():
        trial.work(work.pieces, repeats=repeats, after=after)
    if profiler is not None:
        paths(trial, work.threads, profiler)
    hits, misses = session.cache_counters()
    trial.events.emit("cache", hits=hits, misses=misses)
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
