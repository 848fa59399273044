"""Your tools, one module per topic; `catalogue.py` says which of them are served."""
