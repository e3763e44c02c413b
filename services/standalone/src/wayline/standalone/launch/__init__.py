"""Starting and stopping the services of one process."""
