"""Forms made from a payload: pure functions, no rows, no requests."""
