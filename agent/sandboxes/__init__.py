"""Sandboxes after their tasks have ended, and their logs while they run.

`collector` removes old sandboxes, `erasing` is how, `removals` remembers which;
`rotation` keeps stdout and stderr from growing without end.
"""
