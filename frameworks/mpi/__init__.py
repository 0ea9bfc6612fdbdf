"""MPI jobs on the cluster, with the MPICH or Open MPI that is installed, unmodified.

::

    mesos-py mpi run -n 8 ./program args

`cli` takes a job from a person; `runner` subscribes, holds offers until there is room for
all ranks (`frameworks.common.gang`), has the launcher (`backends`) say what is to run on
each host, and launches that as tasks; `core` decides when the job has ended, and how.
"""
