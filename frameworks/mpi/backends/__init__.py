"""The implementations of MPI that can be used, behind one interface."""
