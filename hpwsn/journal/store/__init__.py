"""The SQLite database below the journal: tables, rows, one writer thread, one reader."""
