"""Runs a script and writes down which function calls which: `python observe_calls.py CALLS MOST SCRIPT [ARGS]`.

A profile hook in every thread sees each Python function begin, also where compiled code calls it (autograd, a
dispatcher, a callback), which no reading of the text shows. Each distinct caller, line and callee becomes one line of
the file CALLS, a JSON list `[caller, callee, path, line]`, when it is first seen: whatever ends the process, what was
seen is there. After MOST of them only their number is kept; it is the last line, when the process ends by itself.

Functions are `module:qualified.name`. What runs on behalf of a function (a comprehension, a generator expression) is
that function. Standard library only.
"""

import json
import os
import runpy
import sys
import threading
from pathlib import Path

ITS_OWN = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
LOCAL = ".<locals>."
PLUMBING = ("importlib", "runpy", "threading", "_distutils_hack")
"""Modules whose calls say nothing of the script: they begin what a thread or an import does."""
FUNCTION = 1
"""Flag of code with fast locals (CO_OPTIMIZED): that of a function, not the body of a module or a class."""


def qualified(code):
    """The name of a function within its module; without classes before Python 3.11, which does not tell."""
    parts = getattr(code, "co_qualname", code.co_name).split(LOCAL)
    while len(parts) > 1 and parts[-1] in ITS_OWN:
        parts.pop()
    return LOCAL.join(parts)


class Observer:
    """Writes down distinct calls; `see` is the profile hook."""

    def __init__(self, path, most):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        self.process = os.getpid()
        self.open = True
        self.most, self.more, self.written = most, 0, 0
        self.seen = set()
        self.roots = sorted((f"{Path(root).absolute()}{os.sep}" for root in sys.path if root), key=len, reverse=True)

    def see(self, frame, event, _argument):
        """One event. Sets are safe to be added to by several threads; a call that two see at once is written twice."""
        caller = frame.f_back
        # A daemon thread keeps its hook, and outlives what the hook needs.
        if event != "call" or caller is None or not self.open:
            return
        key = (caller.f_code, caller.f_lineno, frame.f_code)
        if key not in self.seen:
            self.seen.add(key)
            self.write(caller, key[1], frame)

    def write(self, caller, line, callee):
        """One call between functions, unless it says nothing of the script."""
        ends = []
        for frame in (caller, callee):
            module, code = str(frame.f_globals.get("__name__", "")), frame.f_code
            # Bodies of modules and classes run when something is imported.
            if not code.co_flags & FUNCTION or module.partition(".")[0] in PLUMBING or code.co_filename == __file__:
                return
            ends.append(module + ":" + qualified(code))
        if (ends[0] == ends[1] and callee.f_code.co_name in ITS_OWN) or os.getpid() != self.process:
            return
        if self.written >= self.most:
            self.more += 1
            return
        self.written += 1
        record = [*ends, self.relative(caller.f_code.co_filename), line or 0]
        os.write(self.descriptor, (json.dumps(record) + "\n").encode())

    def relative(self, path):
        """`torch/fx/graph.py` for a file of a library."""
        for root in self.roots:
            if path.startswith(root):
                return path[len(root) :]
        return path

    def close(self):
        """Say how many there were besides."""
        self.open = False
        if os.getpid() == self.process:
            os.write(self.descriptor, (json.dumps({"more": self.more}) + "\n").encode())


def main():
    """Run the script as `python SCRIPT ARGS` would, observed."""
    calls, most, script = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sys.argv = sys.argv[3:]
    # As for `python SCRIPT`: its own folder comes first, not this file's.
    sys.path[0] = str(Path(script).absolute().parent)
    observer = Observer(calls, most)
    threading.setprofile(observer.see)
    sys.setprofile(observer.see)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        observer.close()


if __name__ == "__main__":
    main()
