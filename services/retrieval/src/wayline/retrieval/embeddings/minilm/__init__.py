"""The embedding model on board: all-MiniLM-L6-v2 with int8 weights, and its tokenizer."""
