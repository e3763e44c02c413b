"""Replace keys and passwords while the services run: the old ones hold until every process knows the new."""
