"""Control groups, versions 1 and 2 and both at once: `--isolation cgroups`.

One directory for each container, `ROOT/AGENT ID/CONTAINER ID`, beneath every hierarchy
that is used.  Who does what:

    isolator     the face: each step of a container, over all controllers
    layout       where the groups are: what is mounted, what may be used (v2: delegation)
    cpu ...      one file per controller: what is written, what is read
    oom          a thread that sleeps until the kernel tells of an out-of-memory
    ending       kill all that is in a group, and remove it
    files        everything that touches the file system, and nothing else does
    mounts, numbers, options      text in, values out
"""
