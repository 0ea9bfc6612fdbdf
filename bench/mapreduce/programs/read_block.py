"""A map over one block, whose reading is emulated: its line says how long it takes (seconds)
on a host that has it and elsewhere, and which hosts have it.

The host is known by the work directory of its agent, since all of them are one machine.
"""

import os
import sys
import time

block, here_s, elsewhere_s, *hosts = sys.stdin.readline().split()
is_here = not set(os.getcwd().split("/")).isdisjoint(hosts)  # noqa: PTH109 (starts faster)
time.sleep(float(here_s if is_here else elsewhere_s))
print(f"{block}\t{'here' if is_here else 'elsewhere'}", flush=True)
