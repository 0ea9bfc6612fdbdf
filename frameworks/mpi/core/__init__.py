"""What an MPI job decides; no IO, no clock."""
