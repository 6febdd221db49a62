"""UDP and TCP links between nodes: sockets, sessions and queues."""
