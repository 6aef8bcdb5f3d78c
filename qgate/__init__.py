"""qgate decides whether a quantized LLM checkpoint may be promoted."""

__version__ = "0.1.0"
