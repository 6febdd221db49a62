"""How nodes carry notifications to each other: topology, interest, the router, fragments and links."""
