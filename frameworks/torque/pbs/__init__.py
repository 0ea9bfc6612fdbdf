"""Torque itself: pbs_server, pbs_mom, and its commands."""
