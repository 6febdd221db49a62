"""What a node knows of carried events: their order, and who has them."""
