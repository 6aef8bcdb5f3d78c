"""Engine plugins: each serves a checkpoint and yields a session (see qgate.ports.Engine)."""
