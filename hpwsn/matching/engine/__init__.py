"""The default matching engine: several indexes of conjunctions behind one interface. Pure."""
