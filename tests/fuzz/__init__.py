"""Bad input: whatever comes in, an answer goes out, and no task changes that the input did not rightly change."""
