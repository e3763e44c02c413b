"""Make images with a model, and store them."""
