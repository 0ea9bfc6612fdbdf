"""What `mesos-py --help` says of our sub-commands, without importing them."""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "A cluster": {
        "local": "A master and agents on this machine, for as long as it runs.",
        "master": "Run a master.",
        "agent": "Run an agent.",
    },
    "Work": {
        "run": "Run a command on the cluster and wait for it.",
        "logs": "Show what a task has written.",
        "exec": "Run a command in the container of a task.",
        "kill": "End a task.",
        "teardown": "End a framework and all its tasks.",
    },
    "Frameworks": {
        "mapreduce": "Run MapReduce jobs: Hadoop Streaming, Python, mrjob.",
        "mpi": "Run MPI programs, built with MPICH or Open MPI.",
        "rdd": "Run programs written for PySpark's RDDs, or try them in a shell.",
        "torque": "A PBS batch system (qsub, qstat, qdel) with nodes that come and go.",
        "webfarm": "Serve a web site from as many servers as it needs.",
    },
    "Machines": {
        "drain": "End all tasks on an agent, and offer it no more.",
        "deactivate": "Offer nothing of an agent any more.",
        "reactivate": "Offer an agent again.",
        "gone": "Say that an agent never comes back.",
        "maintenance": "Plan the absence of machines.",
    },
    "What belongs to roles": {
        "reserve": "Reserve a part of an agent for a role.",
        "unreserve": "Give back what was reserved.",
        "volume": "Make, resize, erase and list persistent volumes.",
        "reservations": "List what is reserved, for whom and by whom.",
    },
    "What is there, and why": {
        "tasks": "List tasks, ended ones with --all.",
        "top": "Show what containers use, live.",
        "agents": "List agents and what they have.",
        "frameworks": "List frameworks.",
        "offers": "List offers that are out.",
        "roles": "List roles, or say what a role may have.",
        "explain": "Say why a framework or task gets what it gets.",
    },
    "This program": {
        "version": "Show the version.",
        "completion": "Print the completion script for a shell.",
    },
}

SUMMARIES: Final = {name: text for part in SECTIONS.values() for name, text in part.items()}
