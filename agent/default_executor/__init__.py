"""The agent's own executor: runs the tasks of groups whose executor is of type DEFAULT.

One process for each such executor, `python -m agent.default_executor`, which the agent
starts as any custom executor.  `groups` decides, `executor` is connected to the agent and
starts processes.
"""
