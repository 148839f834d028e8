"""The processes that do the work, and what keeps them alive."""
