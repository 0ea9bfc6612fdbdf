"""Slurm, with its PBS commands in front: slurmctld, slurmd and munged."""
