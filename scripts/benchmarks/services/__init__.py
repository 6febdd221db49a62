"""Stream services as the paper on stream data services measures them: requests, load, consumers, methods."""
