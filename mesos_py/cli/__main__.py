"""`python -m mesos_py.cli`: what `local` starts its daemons with."""

from mesos_py.cli.main import main

if __name__ == "__main__":
    main()
