"""`python -m agent.default_executor`: see `executor.main`."""

from agent.default_executor.executor import main

main()
