"""The web page at /ui/ of a node and of the admin node: its files in `static`, and the door that serves them.

`static/vendor` has released files of others, which `scripts/vendor` writes. All else in `static` is ours, and
reaches the browser as it is: there is no build step. The page itself uses the same addresses as any client.
"""
