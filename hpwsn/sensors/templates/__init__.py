"""Virtual sensors as data: their templates, the windows of their readings, and the results."""
