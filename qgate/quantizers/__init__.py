"""Quantizer plugins: an options model, a lock, a worker path each (see qgate.ports.Quantizer)."""
