"""`python -m agent.fetcher`: the process that fetches for one task."""

from agent.fetcher.helper import main

main()
