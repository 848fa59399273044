"""One Lambda handler each: a handler translates and calls one thing."""
