"""An app, as it is installed on one of the machines."""
