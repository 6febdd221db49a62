"""Topics over HTTP: the list of topics, edits, export and import, and checks of content filters."""
