"""Networks of containers' own: namespaces, a bridge, port mappings, bandwidth limits."""
