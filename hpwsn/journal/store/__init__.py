"""The SQLite database of the journal: tables, rows, one writer thread, one reader thread."""
