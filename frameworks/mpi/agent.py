"""Started by path, in place of ssh: `agent.py SOCKET HOST COMMAND...` has it run on the host.

It asks the runner, by the Unix socket, and ends with 0 once that has the order.
"""

import json
import socket
import sys

_ANSWER_WITHIN_S = 30


def main() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_ANSWER_WITHIN_S)
        asking.connect(sys.argv[1])
        asking.sendall(json.dumps({"host": sys.argv[2], "words": sys.argv[3:]}).encode() + b"\n")
        answer = asking.recv(100)
    sys.exit(0 if answer == b"ok\n" else "the runner does not know that host")


if __name__ == "__main__":
    main()
