"""State machines of your own: their definitions, and the Lambda functions that their states invoke."""
