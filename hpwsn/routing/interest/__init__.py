"""Interest: which nodes want which topics, and the routes that follow from it. Pure."""
