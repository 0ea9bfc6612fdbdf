"""What a task asks for by URI is put into its sandbox before its command starts.

`fetcher` is the agent's part: it shares files between tasks (`cache`), and starts one
short-lived process for each task (`helper`), which does the work as the task's user.
"""
