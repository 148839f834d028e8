"""The pure core: no Django, no clock, no randomness, no I/O."""
