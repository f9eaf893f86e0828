"""Several threads in one process, each training a small DFlash drafter through torch.compile(flex_attention).

Each thread has a model, an AdamW optimizer and a CUDA stream of its own; with several GPUs thread i takes GPU
i modulo their number. The query width differs from step to step (as random anchors make it), the block mask is rebuilt
every step, and a step is forward + backward + update. What is reported: failures, compile windows, sequence tokens a
second, peak memory beside what fused and unfused attention should take, which path the attention took in every
thread, its error against a float64 reference, and the losses.

  barrier      all threads start together on a cold compiler; who is warm first goes on calling while the rest compile
  staggered    the same, each thread `stagger` seconds after the one before
  hot          warmed up one after another; then w0 compiles fresh attention while the others go on calling theirs

After that come the timed steps, all threads together, in every pattern. A token is a token of the training sequences
(batch x length a step), as training logs count.

Mitigations: warmup (every shape in one thread first), lock-creation (a lock where the compiled object is made: what
the incident's trainer had), lock-first-call (a lock round each thread's first call of a shape), lock-all (a lock round
every forward + backward).

On a CPU flex attention has no backward: attention runs forward only, so its projections get no gradient and all the
rest trains. Use `--backend aot_eager` there: inductor compiles C++ for half a minute. Peak memory and kernels are not
seen on a CPU. With the backend `eager` all attention is unfused, on purpose.

  python reproducers/dflash.py                               three threads, on the GPU if there is one
  python reproducers/dflash.py --side serial                 the control: the same work in one thread
  python reproducers/dflash.py --attention transformers --pattern hot
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
import protocol

OPTIONS = {
    "threads": {"default": 3, "min": 1, "max": 64, "help": "worker threads, each with a drafter"},
    "pattern": {
        "default": "barrier",
        "choices": ["barrier", "hot", "staggered"],
        "help": "who compiles while who calls, see above",
    },
    "attention": {
        "default": "torch",
        "choices": ["torch", "transformers"],
        "help": "plain torch, or transformers' Qwen3 modules and flex attention path",
    },
    "mitigation": {
        "default": "none",
        "choices": ["none", "warmup", "lock-creation", "lock-first-call", "lock-all"],
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
    "shapes": {
        "default": "varying",
        "choices": ["varying", "constant"],
        "help": "query widths that differ from step to step, or padded to one",
    },
    "backend": {
        "default": "inductor",
        "choices": ["inductor", "aot_eager", "eager"],
        "help": "backend of torch.compile",
    },
    "steps": {"default": 30, "min": 1, "max": 100000, "help": "timed steps of each thread"},
    "warm_steps": {"default": 4, "min": 1, "max": 1000, "help": "cold steps before them; every width at least once"},
    "fresh": {"default": 3, "min": 1, "max": 1000, "help": "fresh compiles of w0 in the pattern hot"},
    "stagger": {"default": 1.0, "min": 0.0, "max": 60.0, "help": "seconds between two starts in the pattern staggered"},
    "window": {"default": 0, "min": 0, "max": 65536, "help": "sliding window of all layers but the last; 0: none"},
    "recompile_limit": {
        "default": 0,
        "min": 0,
        "max": 4096,
        "help": "torch._dynamo.config.recompile_limit, set in the main thread as trainers do; 0 leaves it alone",
    },
}


def notes(trial: protocol.Trial, device: str, name: str) -> None:
    """What the reader of the events must know of this trial."""
    trial.events.emit("note", key="size", value=name)
    if device == "cpu":
        left_out = "flex attention's backward (it has none on a CPU), peak memory, kernel names"
        trial.events.emit("note", key="left_out_on_cpu", value=left_out)
    elif trial.side == "profile" and trial.condition["backend"] != "inductor":
        trial.events.emit("note", key="kernels", value="only inductor has fused kernels to look for")


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
        signs = dict(attention.unfused)
        if thread.index in found:
            seen = found[thread.index]
            unfused = kernels.unfused_calls(seen, attention.calls)
            if unfused is not None:
                signs["kernels"] = unfused
            trial.events.emit("note", key=f"kernels_{name}", value=kernels.described(seen, attention.calls))
        elif profiler is not None:
            trial.events.emit("note", key=f"kernels_{name}", value="no kernel of this thread was seen after warm-up")
        trial.events.emit("path", thread=name, calls=attention.calls, signs=signs)


def memory(trial: protocol.Trial, size: plan.Size, threads: list[Any]) -> None:
    """The peak of the fullest device during the timed steps, and what it should be there."""
    peaks = {thread.device: thread.peak for thread in threads}
    device = max(peaks, key=lambda each: peaks[each])
    residents = sum(thread.device == device for thread in threads)
    active = residents if trial.side in protocol.THREADED else 1
    one = plan.memory(size, size.anchors, trial.condition["checkpointing"], 2)
    if peaks[device]:
        predicted = plan.predicted(one, residents, active)
        trial.events.emit("memory", peak_bytes=peaks[device], predicted=predicted, device=str(device))


def main() -> int:
    """One trial; the exit status."""
    trial = protocol.Trial.begin(OPTIONS, __doc__)
    condition = trial.condition
    with trial.importing():
        import dflash_attention as attention
        import dflash_worker as work
        import torch

        if condition["attention"] == "transformers":
            import transformers.models.qwen3.modeling_qwen3  # noqa: F401
    trial.ready()
    device = trial.device()
    name, size = plan.size_of(condition["size"], device)
    notes(trial, device, name)
    if condition["recompile_limit"]:
        torch._dynamo.config.recompile_limit = condition["recompile_limit"]
    trial.windows.follow()

    backend, mitigation = condition["backend"], condition["mitigation"]
    signs = attention.Signs(backend, condition["attention"])
    if condition["attention"] == "torch":
        call = attention.through_torch(backend, mitigation)
    else:
        call = attention.through_transformers(backend, mitigation, device)
    count = 1 if trial.side == "solo" else condition["threads"]
    threads = [work.Thread(trial, index, size, call, signs, device) for index in range(count)]
    if device == "cuda":
        for thread in threads:
            torch.cuda.synchronize(thread.device)
        work.name_autograd_threads(threads)

    profiler = None
    if trial.side == "profile" and device == "cuda" and backend == "inductor":
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    meeting = work.Meeting(count)
    with profiler or nullcontext():
        trial.work([work.all_work(thread, threads, meeting) for thread in threads])
    paths(trial, threads, profiler)
    if device == "cuda":
        memory(trial, size, threads)
    hits, misses = work.summed_cache_counters()
    trial.events.emit("cache", hits=hits, misses=misses)
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
