"""Stand-ins for what runs a command elsewhere, which treat standard input and words as docker, kubectl and srun do."""

from __future__ import annotations

from pathlib import Path

DOCKER = """\
#!/bin/sh
[ "$1" = exec ] || exit 125
shift
input=/dev/null
while :; do
    case "$1" in
        -i|-it|-ti|--interactive) input=/dev/stdin; shift ;;
        -t) shift ;;
        -e|--env) export "$2"; shift 2 ;;
        *) break ;;
    esac
done
case "$1" in
    trainer) ;;
    distroless) echo 'OCI runtime exec failed: exec failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown' >&2; exit 127 ;;
    forbidden) echo 'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix' >&2; exit 1 ;;
    *) echo "Error response from daemon: No such container: $1" >&2; exit 1 ;;
esac
shift
exec env -i PATH="$PATH" ${GREETING:+GREETING="$GREETING"} "$@" <"$input"
"""  # noqa: E501
KUBECTL = """\
#!/bin/sh
[ "$1" = exec ] || exit 1
shift
input=/dev/null
while :; do
    case "$1" in
        -i|--stdin) input=/dev/stdin; shift ;;
        --) shift; break ;;
        *) pod=$1; shift ;;
    esac
done
echo 'Defaulted container "main" out of: main, sidecar' >&2
exec env -i PATH="$PATH" "$@" <"$input"
"""
SRUN = """\
#!/bin/sh
tasks=1
while :; do
    case "$1" in
        -n) tasks=$2; shift 2 ;;
        -w) shift 2 ;;
        *) break ;;
    esac
done
echo 'srun: job 4711 queued and waiting for resources' >&2
given=$(cat; echo x)
while [ "$tasks" -gt 0 ]; do
    printf %s "${given%x}" | "$@" || exit
    tasks=$((tasks - 1))
done
"""
SUDO = """\
#!/bin/sh
[ "$1" = -n ] && shift
echo 'sudo: a terminal is required to read the password; either use the -S option or configure an askpass helper' >&2
echo 'sudo: a password is required' >&2
exit 1
"""


def wrappers(folder: Path) -> Path:
    """Makes ``docker``, ``kubectl``, ``srun`` and a ``sudo`` that may not in a folder, for PATH."""
    folder.mkdir(exist_ok=True)
    for name, text in (("docker", DOCKER), ("kubectl", KUBECTL), ("srun", SRUN), ("sudo", SUDO)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder
