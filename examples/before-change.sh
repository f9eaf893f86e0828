#!/bin/sh
# before-change.sh SOURCE REQUIREMENTS COMMAND...: change a host only if its new environment passes the gate.
#
# For Ansible, Salt, Puppet or a cron job: COMMAND is what makes the change, and runs only after a pass, or where nothing
# changes that trials could show. SOURCE is the environment as it is now: 'host:ssh gpu3', a virtual environment's folder,
# the output of pip freeze in a file. Run it on a machine with the same GPUs and driver: the trials run here.
#
#   before-change.sh 'host:ssh gpu3' new.txt ansible-playbook -l gpu3 upgrade.yml
#
#   GATE_OPTIONS   what a trial runs and what must hold; default: --reproducer dflash
#   GATE_REPORTS   folder of the reports; default: gate-reports
#
# Ends with the gate's exit code when the host was not touched (1 fail, 2 bad input, 3 inconclusive, 5 infrastructure), and
# with COMMAND's otherwise.
set -u
if [ "$#" -lt 3 ]; then
    echo "usage: before-change.sh SOURCE REQUIREMENTS COMMAND..." >&2
    exit 2
fi
source=$1 requirements=$2
shift 2
options=${GATE_OPTIONS:---reproducer dflash}
reports=${GATE_REPORTS:-gate-reports}

mkdir -p "$reports" || exit 5
# The options are several words on purpose.
# shellcheck disable=SC2086
bisect-env gate --baseline "$source" --requirements "$requirements" --baseline-store \
    --output "$reports/gate.txt" --json "$reports/gate.json" --html "$reports/gate.html" $options
code=$?
case $code in
    0) ;;
    4) echo "before-change: nothing changes that trials could show" ;;
    *)
        echo "before-change: not touched, the gate ended with $code: $*" >&2
        exit "$code"
        ;;
esac
exec "$@"
