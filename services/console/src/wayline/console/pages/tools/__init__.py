"""The pages about tools: what agents may call, the servers that bring it, and the secrets of those."""
