"""Heavy jobs, one package each with its own requirements; the API function never imports them."""
