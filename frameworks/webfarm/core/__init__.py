"""What the farm decides, and what it is told and tells.  Pure: no IO, no clock, no threads."""
