"""Jobs from their submission to their settlement: first records, signals, children, results."""
