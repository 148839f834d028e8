"""An order with several parcels that arrives as a whole or is undone, and the partners that it works with."""
