"""Everything that touches disk, processes, sockets and environments."""
