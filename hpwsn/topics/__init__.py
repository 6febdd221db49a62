"""The topic tree, and the directories it can be loaded from."""
