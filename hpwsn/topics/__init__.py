"""The topic tree, and the topic directories that it can be loaded from."""
