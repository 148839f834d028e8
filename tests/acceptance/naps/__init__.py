"""An app of graphs that sleep and wait."""
