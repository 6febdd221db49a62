"""The parts of OpenAPI documents that nodes and the admin node share, as JSON files."""
