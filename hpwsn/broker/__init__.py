"""The broker: publisher, processor, subscriptions, pull points, lifetimes and delivery to consumers."""
