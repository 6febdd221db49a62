"""From committed notifications to consumers: matching, one ordered queue per subscription, dead letters."""
