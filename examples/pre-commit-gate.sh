#!/bin/sh
# pre-commit-gate.sh FILE...: gate each requirements file against the one of another revision.
#
# For pre-commit (pre-commit-config.yaml), which passes the changed files, or from a git hook of your own; both run at the
# top of the repository. Any answer but a pass stops the push. What the gate has measured is kept: the next try goes on.
#
#   GATE_BASE      the revision to compare with; default: the upstream branch
#   GATE_OPTIONS   what a trial runs and what must hold; default: --reproducer compile_race
#   SKIP=gate      pre-commit's own way to push all the same
set -u
base=${GATE_BASE:-}
[ -n "$base" ] || base='@{upstream}'
options=${GATE_OPTIONS:---reproducer compile_race}

for file in "$@"; do
    if ! revision=$(git rev-parse --verify --quiet "$base^{commit}"); then
        echo "gate: there is no revision $base; set GATE_BASE to one" >&2
        exit 2
    fi
    if ! git cat-file -e "$revision:$file" 2>/dev/null; then
        echo "gate: $file is new, so that there is nothing to compare it with"
        continue
    fi
    # The options are several words on purpose.
    # shellcheck disable=SC2086
    bisect-env gate --baseline "$revision:$file" --candidate "$file" --baseline-store $options
    code=$?
    case $code in
        0) ;;
        4) echo "gate: nothing that trials could show has changed in $file" ;;
        *) exit "$code" ;;
    esac
done
