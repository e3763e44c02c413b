"""Messages taken in, handled and settled; requests answered."""
