"""What each rank runs under: a keeper in sh that says when it starts and how it ends.

Launchers do not tell who has ended, and hydra waits for ever when a rank leaves before
MPI_Init.  So the program of a rank is started by a few lines of shell, which an agent or an
image has anyway.  What it has to say it writes as one line to stderr, that of the rank,
where the launcher carries it: there is no other way that is open wherever MPI itself is.

Whether a rank has left MPI in peace (MPI_Finalize) is told by its end of the wire to the
process manager (PMI_FD): the manager closes the other end when the rank finalizes, and only
then; so what is read there afterwards is the end of the file, or nothing at all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from frameworks.mpi.core.job import VANISHED

# $0: the secret word; $1: the directory to work in; $2: the launcher's address as
# /proc/net/route has it.  UCX, libfabric and Open MPI are told the device that leads there:
# left alone they may pick one that no other host can reach.
_KEEPER: Final = """\
word=$0 dir=$1 launcher=$2
shift 2
rank=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-}}}
say() { printf '%s%s %s\\n' "$word" "$rank" "$*" >&2; }
if ! cd "${dir:-${MESOS_SANDBOX:-.}}"; then say end 126; exit 126; fi
device='' best=0
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] && [ -r /proc/net/route ]; then
    while read -r name to _ _ _ _ _ mask _; do
        [ "$mask" = Mask ] && continue
        [ $((0x$launcher & 0x$mask)) -eq $((0x$to)) ] || continue
        [ $((0x$mask & best)) -eq "$best" ] || continue
        device=$name best=$((0x$mask))
    done </proc/net/route
    case $launcher in *7F) device=lo ;; esac
fi
if [ -n "$device" ]; then
    : "${UCX_NET_DEVICES:=$device}" "${FI_TCP_IFACE:=$device}" "${FI_SOCKETS_IFACE:=$device}"
    : "${OMPI_MCA_btl_tcp_if_include:=$device}"
    export UCX_NET_DEVICES FI_TCP_IFACE FI_SOCKETS_IFACE OMPI_MCA_btl_tcp_if_include
fi
# Several agents of one machine are one host to Open MPI, which would name the memory that ranks
# share alike for all of them; and here it goes with the sandbox, however they end.
: "${OMPI_MCA_btl_vader_backing_directory:=${MESOS_SANDBOX:-$PWD}}"
export OMPI_MCA_btl_vader_backing_directory
say start
note=${MESOS_SANDBOX:-.}/.ranks/$rank
echo $$ 2>/dev/null >"$note"
# stdin is that of rank 0; what hydra gives the others never ends.
[ "$rank" = 0 ] || exec </dev/null
"$@"
code=$?
say end "$code"
if [ -n "$PMI_FD" ]; then
    with=sh
    # Not every sh can name a descriptor of two digits.
    [ ${#PMI_FD} -gt 1 ] && command -v bash >/dev/null && with=bash
    $with -c 'timeout 1 dd bs=1 count=1 <&"$0"' "$PMI_FD" >/dev/null 2>&1
    case $? in 0) say left yes ;; 124 | 143) say left no ;; esac
fi
rm -f "$note"
exit "$code"
"""

# What runs a proxy as a task: it looks every now and then whether the keepers, each of which
# has left its pid, are still there (and not only waiting to be reaped).  Of one that was killed
# nobody else would know.
_WATCHED: Final = """\
mkdir -p .ranks
%s </dev/null &
proxy=$!
(
    while sleep 2 && kill -0 "$proxy"; do
        for note in .ranks/*; do
            read -r keeper <"$note" || continue
            read -r _ _ state _ <"/proc/$keeper/stat" && [ "$state" != Z ] && continue
            [ -e "$note" ] && : >vanished && kill -9 "$proxy"
        done
    done
) >/dev/null 2>&1 &
looking=$!
wait "$proxy"
code=$?
kill "$looking" 2>/dev/null
[ -e vanished ] && exit %d
exit "$code"
"""


def kept(program: Sequence[str], *, word: bytes, directory: str, launcher: str) -> list[str]:
    """The command of a rank: the program under its keeper.

    word: what its reports begin with.  directory: where the program runs ("": the sandbox).
    launcher: the IPv4 address of the launcher, which all hosts reach.
    """
    routed = route_form(launcher)
    return ["sh", "-c", _KEEPER, word.decode("ascii"), directory, routed, *program]


def route_form(address: str) -> str:
    """An IPv4 address as /proc/net/route writes it, the last byte first."""
    return ipaddress.IPv4Address(address).packed[::-1].hex().upper()


def watched(proxy: str) -> str:
    """The command line of a task that runs a proxy; VANISHED is its exit code when a keeper was
    killed."""
    return _WATCHED % (proxy, VANISHED)
