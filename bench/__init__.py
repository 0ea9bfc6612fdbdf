"""Measurements of a real cluster on this machine, each next to its floor.

`python -m bench` runs all of them, `python -m bench NAME` one; docs/performance.md
says what each measures and what was reached.
"""
