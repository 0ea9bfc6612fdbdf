"""The executor: runs attempts of tasks on one machine, and lets none of them hurt another.

::

    worker (`executor`)      talks with the agent and the tracker; loads nothing of users
      └── zygote             has the libraries loaded, forks an attempt in milliseconds
            └── attempt      one task: owns its directory, its files, its programs
                  ├── feeder     reads the input into the program
                  └── program    the user's: a command, or a function in a fork

`host` is the worker's side of zygote and attempts, and is used without a cluster too (`local`).
`place` says where everything lies.
"""
