"""Sessions: the turns of their jobs, the order in which they were accepted, and sessions as a resource."""
