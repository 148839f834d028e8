"""An app that stretches the competitive brief, so that a kill has time to land inside it."""
