"""The executor: keeps data sets in memory and runs tasks on them, in processes of their own.

`python -m frameworks.rdd.executor` is the parent.  It forks the fork server (forks.py) before
it has any thread, which in turn forks the workers (worker.py), one for each slot.  The parent
(parent.py) has the link to the driver, the blocks (store.py) and the block service; a worker
runs one task at a time and asks the parent for what it needs over a socket (packets.py).
"""
