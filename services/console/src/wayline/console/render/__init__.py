"""How values look: money, times, tokens, words of strangers, JSON, traces."""
