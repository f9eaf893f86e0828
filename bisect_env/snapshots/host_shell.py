"""The lines for the shell of another host: they find the Python that is asked for, and give it the program.

For any POSIX shell. The program is an argument: for a here-document shells need a /tmp that can be written.
"""

from __future__ import annotations

import shlex

_FIND = "python=$(command -v python3 || command -v python)"
_NONE = "there is no python3 on PATH: name one with --python, or at the end of the command; or an environment, @VENV"


def lines(program: str, venv: str = "", python: str = "", pid: int = 0) -> str:
    """A script for ``sh``.

    Args:
        program: for Python.
        venv: activated first: a folder with ``bin/activate``, or a file to be sourced, by bash where there is one.
        python: the interpreter, instead of the one that is found.
        pid: of the process that the program looks at. Its interpreter will do where there is no other.
    """
    if venv:
        return _activated(program, venv)
    if python:
        found = [f"python={_place(python)}", _unless('[ -x "$python" ]', "there is no $python that can be started")]
    elif pid:
        found = [
            f"python=$(readlink /proc/{pid}/exe 2>/dev/null)",
            'case "${python##*/}" in python*) ;; *) python= ;; esac',
            f'[ -x "$python" ] || {_FIND}',
        ]
    else:
        found = [_FIND]
    started = f'"$python" -B -c {shlex.quote(program)} </dev/null'
    return "\n".join([*found, _unless('[ -n "$python" ]', _NONE), started, "exit $?", ""])


def _activated(program: str, venv: str) -> str:
    inner = "\n".join(
        [
            # The file that is sourced would see them as its own arguments.
            "bisect_env_file=$1 bisect_env_program=$2; shift 2",
            _unless('. "$bisect_env_file" </dev/null', "$bisect_env_file could not be activated"),
            # An environment that may be moved does not know in every shell where it is: its own Python does.
            'python="${bisect_env_file%/*}/python"',
            f'[ -x "$python" ] || {_FIND}',
            _unless('[ -n "$python" ]', _NONE),
            '"$python" -B -c "$bisect_env_program" </dev/null',
        ]
    )
    outer = [
        f"venv={_place(venv)}",
        '[ -d "$venv" ] && venv="$venv/bin/activate"',
        'case "$venv" in */*) ;; *) venv="./$venv" ;; esac',
        _unless('[ -r "$venv" ]', "there is no $venv to activate"),
        "shell=$(command -v bash || command -v sh)",
        f'"$shell" -c {shlex.quote(inner)} bisect-env "$venv" {shlex.quote(program)} </dev/null',
        "exit $?",
        "",
    ]
    return "\n".join(outer)


def _place(path: str) -> str:
    """A path as the shell there takes it: ``~/`` is the home on that side."""
    home, _, rest = path.partition("/")
    return '"$HOME"/' + shlex.quote(rest) if home == "~" else shlex.quote(path)


def _unless(condition: str, complaint: str) -> str:
    return f'{condition} || {{ echo "bisect-env: {complaint}" >&2; exit 9; }}'
