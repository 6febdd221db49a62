"""The places of subscriptions in the log, as rows of the journal."""
