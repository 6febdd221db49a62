"""The interface of topic directories, the TOML file as one of them, and the live tree that follows one."""
