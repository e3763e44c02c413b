"""One installation: its directory, credentials, migrations."""
