"""Pictures of the page for the documents: a browser, a cluster with work to show, and what is taken of it."""
