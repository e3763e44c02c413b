"""What is outside: file formats and the embedding provider; each turns its errors into ours."""
