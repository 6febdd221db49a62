"""What a node or an admin node measures, remembers and tells about itself."""
