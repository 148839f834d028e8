"""An app of graphs to be tried by crashtest; a test names it in DURABLEWEB_APPS."""
