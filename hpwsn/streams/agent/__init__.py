"""The service agent: runs posted definitions as jobs in processes of their own, and keeps them running."""
