"""The exchange with carriers: what the log, the documents and the files of a node have to do with it."""
