"""A gRPC server of our own for the master's port: HTTP/2 with as little work per message
as Python allows.

`--front lean` chooses it.  grpc.aio costs a process 40 µs and more for each message of a
stream, whatever is in it, and two rounds of the event loop for each stream that comes: of
a master with tens of thousands of busy agents that is more than all it decides.  Here
frames are read as they lie in the buffer, and what a round of the loop says to the peers
of one connection leaves it in one write.

`http2` knows the bytes, `connection` one peer, `server` the port and the plain calls,
`talks` what the long-lived streams say to the core.  Clients are ordinary gRPC clients.
"""
