"""What became of deliveries, for plug-ins and for publishers."""
