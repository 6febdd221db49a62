"""What a simulated run is given: parameters, sensors and their communities, moving subscribers, events."""
