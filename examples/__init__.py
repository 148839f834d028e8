"""Real graphs to start from. They import only the public names of `runs`."""
