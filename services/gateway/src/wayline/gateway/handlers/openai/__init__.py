"""`/openai/v1`: the API that OpenAI clients speak, over agents."""
