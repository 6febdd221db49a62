# The Pythons that the scripts take, newest first; tests/unit/test_distribution.py compares them with setup.cfg.
SUPPORTED_PYTHONS="3.14 3.13 3.12 3.11"
