"""Child scripts that run in a tool's own environment. They never import qgate's rooms."""
