"""What is to be done next, for all jobs: no IO, no clock; told of events, asked for orders."""
