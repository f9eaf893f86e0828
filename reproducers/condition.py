"""A reproducer's condition, checked against its OPTIONS, and the summary printed when it is run by hand.

``OPTIONS`` maps an option's name to its default, its choices or its least and greatest value, and a line of help.
Part of the protocol module that the shipped reproducers share; nothing here is a reproducer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

SIDES = ("threads", "serial", "solo", "profile", "warmup", "rounds")
NOT_OURS = ("cache",)
"""Condition keys that the runner honours, not the reproducer."""
ASKED = ("side", "seed", "only_repeat")
"""Keys of the condition file that are no condition: what this one trial is asked for."""

Options = Mapping[str, Mapping[str, Any]]


class CannotRunHere(Exception):
    """The condition asks for something that this machine or environment does not have: exit status 125."""


def problem(name: str, option: Mapping[str, Any], value: Any) -> str:
    """What is wrong with ``value`` for this option; empty when it is fine."""
    default = option["default"]
    wanted = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
        return f"{name}: {value!r} is not of type {type(default).__name__}"
    if "choices" in option and value not in option["choices"]:
        return f"{name}: {value!r} is none of {', '.join(map(str, option['choices']))}"
    if value < option.get("min", value) or value > option.get("max", value):
        return f"{name}: {value!r} is not between {option.get('min', '-inf')} and {option.get('max', 'inf')}"
    return ""


def checked(options: Options, given: Mapping[str, Any]) -> dict[str, Any]:
    """The condition with defaults filled in.

    Raises:
        ValueError: a value is of the wrong type or out of range.
        CannotRunHere: a key that changes how a trial runs is not an option of this reproducer.
    """
    foreign = {k: v for k, v in given.items() if k not in options and k not in (*ASKED, *NOT_OURS)}
    unmet = [f"{key}={value}" for key, value in foreign.items() if value != "none"]
    if unmet:
        raise CannotRunHere(f"this reproducer has no option for {', '.join(unmet)}")
    condition = {name: given.get(name, option["default"]) for name, option in options.items()}
    condition |= {"side": given.get("side", "threads"), "seed": given.get("seed", 0)}
    problems = [problem(name, option, condition[name]) for name, option in options.items()]
    problems.append(problem("side", {"default": "threads", "choices": SIDES}, condition["side"]))
    problems.append(problem("seed", {"default": 0, "min": 0}, condition["seed"]))
    only = given.get("only_repeat")
    if only is not None:
        if "repeats" not in options:
            raise CannotRunHere(f"this reproducer has no repeats, so that it cannot do only_repeat={only}")
        condition["only_repeat"] = only
        problems.append(problem("only_repeat", {"default": 0, "min": 0}, only))
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))
    return condition


def command_line(options: Options, description: str, arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """The values given on the command line; ends the process with status 2, or 0 after ``--help``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=SIDES, default="threads", help="which comparison to run (default: threads)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    for name, option in options.items():
        default, flag = option["default"], "--" + name.replace("_", "-")
        text = f"{option['help']} (default: {default})".replace("%", "%%")
        if isinstance(default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
        else:
            parser.add_argument(flag, type=type(default), choices=option.get("choices"), default=default, help=text)
    return vars(parser.parse_args(arguments))


def summary(seen: Sequence[Mapping[str, Any]], condition: Mapping[str, Any]) -> str:
    """The events as a person wants to read them: one line a fact."""
    lines = ["condition: " + ", ".join(f"{key}={value}" for key, value in condition.items())]

    def of(name: str) -> list[Mapping[str, Any]]:
        return [event for event in seen if event["event"] == name]

    for event in of("ready"):
        lines.append("versions:  " + ", ".join(f"{key} {value}" for key, value in event["versions"].items()))
        lines.append("devices:   " + ", ".join(event["devices"]))
    warm = [event for event in of("step") if event["warm"]]
    for thread in sorted({event["thread"] for event in warm}):
        mine = [event for event in warm if event["thread"] == thread]
        tokens, seconds = sum(event["tokens"] for event in mine), sum(event["seconds"] for event in mine)
        lines.append(f"{thread}: {tokens} tokens warm in {seconds:.2f} s, {tokens / max(seconds, 1e-9):.0f} tokens/s")
    for event in of("path"):
        signs = ", ".join(f"{sign} {count}" for sign, count in event["signs"].items())
        lines.append(f"{event['thread']}: {event['calls']} calls after its first; seen unfused: {signs or 'no sign'}")
    begun = sum(event["phase"] == "begin" for event in of("window"))
    calls = sum(event["count"] for event in of("exposures"))
    lines.append(f"compiles: {begun}; calls made while another thread was compiling: {calls}")
    for event in of("memory"):
        lines.append(f"peak memory: {event['peak_bytes'] / 2**20:.0f} MiB")
    for event in of("numbers"):
        error, tolerance = event["error"], event["tolerance"]
        lines.append(f"numbers: {event['what']}: relative error {error:.3g} (tolerance {tolerance:.3g})")
    lines += [f"note: {event['key']}: {event['value']}" for event in of("note")]
    failures = of("failure")
    for event in failures:
        place = f" in {event['module']} ({event['where']})" if event["module"] else ""
        lines.append(f"FAILED {event['thread']}: {event['type']}{place}: {event['message']}")
    lines.append(f"outcome: {len(failures)} thread(s) failed" if failures else "outcome: no thread failed")
    return "\n".join(lines)
