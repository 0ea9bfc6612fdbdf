"""What the HTTP faces of master and agent share: bodies, streams, media types, the server."""
