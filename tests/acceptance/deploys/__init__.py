"""One app of graphs as it is at several moments of a deploy: each a package that DURABLEWEB_APPS can name."""
