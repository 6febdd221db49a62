"""Topics over HTTP: the list of topics, and checks of content filters."""
