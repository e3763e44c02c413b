"""Who may connect to the installation's bus."""
