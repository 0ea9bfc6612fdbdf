"""Started by path: `tether.py PID PROGRAM ...` becomes the program, and ends with process PID.

The kernel sees to it (PR_SET_PDEATHSIG), so it holds also when that process is killed with
SIGKILL.  It must be the parent.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, argv = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("who started this has gone")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
