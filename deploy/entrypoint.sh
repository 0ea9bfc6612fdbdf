#!/bin/sh
# In a container a daemon listens everywhere, and must tell others where it can be reached: at the
# container's first address, unless it was told another one.
set -eu

if [ "${1:-}" = master ] || [ "${1:-}" = agent ]; then
    addresses=$(hostname -i)
    address=${addresses%% *}
    export MESOS_PY_MASTER_ADVERTISE_IP="${MESOS_PY_MASTER_ADVERTISE_IP:-$address}"
    export MESOS_PY_AGENT_ADVERTISE_IP="${MESOS_PY_AGENT_ADVERTISE_IP:-$address}"
fi
exec mesos-py "$@"
