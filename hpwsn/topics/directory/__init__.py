"""The interface of topic directories, the TOML file implementation, and the live tree that follows a
directory.
"""
