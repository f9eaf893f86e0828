"""What an annotation that threads left behind costs a compiled backward that nothing goes wrong in.

Two kinds of processes take turns. Both make block masks in threads before they compile a small function and time its
forward and backward, warm: one makes them in one thread, the other in several at the same time, until an annotation has
come to stay (torch 2.13 and later; on one without it they stop after the same number of masks).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path

from measuring import say, scratch, show

MEASURED = """
import json, statistics, sys, threading, time, torch
import torch._inductor.metrics as metrics
import torch.fx.traceback as annotations
from torch.nn.attention.flex_attention import create_block_mask
threads, most, steps = map(int, sys.argv[1:])
torch.set_num_threads(1)
def stays():
    return bool(annotations.get_current_meta().get("custom"))
def masks():
    for _ in range(50):
        try:
            create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
        except KeyError:
            pass
made = 0
while made < most and not stays():
    working = [threading.Thread(target=masks) for _ in range(threads)]
    for each in working:
        each.start()
    for each in working:
        each.join()
    made += 50 * threads
def work(x, w):
    for index in range(6):
        x = (x * w).tanh() + index * x.sigmoid()
    return (x * x).mean()
compiled, x, w = torch.compile(work), torch.randn(512, 512), torch.randn(512, requires_grad=True)
compiled(x, w).backward()
times = []
for _ in range(steps):
    start = time.perf_counter()
    compiled(x, w).backward()
    times.append(time.perf_counter() - start)
print(json.dumps({"torch": torch.__version__, "stays": stays(), "made": made, "seconds": statistics.median(times),
                  "kernels": metrics.generated_kernel_count}))
"""


def measure(python: Path, root: Path, threads: int, most: int, steps: int) -> dict[str, object]:
    """One process, with a compile cache of its own."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(root), "TORCHINDUCTOR_CACHE_DIR": str(root / "cache")}
    words = [str(python), "-c", MEASURED, str(threads), str(most), str(steps)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, action="append", required=True, help="an interpreter with torch")
    parser.add_argument("--pairs", type=int, default=3, help="processes of each kind (default: 3)")
    parser.add_argument("--threads", type=int, default=4, help="that make masks at the same time (default: 4)")
    parser.add_argument("--most", type=int, default=4000, help="masks at most (default: 4000)")
    parser.add_argument("--steps", type=int, default=50, help="timed steps (default: 50)")
    asked = parser.parse_args()
    lines = []
    for python in asked.environment:
        found: dict[int, list[dict[str, object]]] = {1: [], asked.threads: []}
        for number in range(asked.pairs):
            for threads in found if number % 2 else reversed(found):
                with scratch(None) as root:
                    found[threads].append(measure(python.absolute(), root, threads, asked.most, asked.steps))
                say(f"{python} {number + 1}/{asked.pairs}, {threads} threads: {found[threads][-1]}")
        seconds = {threads: [float(str(each["seconds"])) for each in records] for threads, records in found.items()}
        ratios = [many / one for many, one in zip(seconds[asked.threads], seconds[1], strict=True)]
        for threads, records in found.items():
            lines.append(
                [
                    str(records[0]["torch"]),
                    f"{threads}",
                    f"{sum(bool(each['stays']) for each in records)}/{len(records)}",
                    ", ".join(sorted({str(each["kernels"]) for each in records})),
                    f"{1000 * statistics.median(seconds[threads]):.1f}",
                    f"{statistics.median(ratios):.2f}" if threads > 1 else "",
                ]
            )
    headers = ["torch", "threads that made masks", "left behind", "kernels", "ms a step", "x"]
    show(lines, headers, ["x: of the one over the other, the median over the pairs"])


if __name__ == "__main__":
    main()
