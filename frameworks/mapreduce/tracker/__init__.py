"""The framework's scheduler: the shell around `core`, which decides.

One thread (`Rounds`) owns the brain; what happens (callbacks of the driver, calls of
clients, parts that were moved) is put into its queue.  Each round takes in all that has
come, writes down what must survive (`journal`), and then does what the brain has ordered.
"""
