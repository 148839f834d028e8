"""The run console: what pages show, and how it is drawn."""
