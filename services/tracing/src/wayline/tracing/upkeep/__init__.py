"""What runs every so often: the check of tables against logs, gauges, partitions and retention."""
