"""Random sequences of what clients, workers, engines, crashes and the clock do, against the rules."""
