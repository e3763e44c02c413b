"""Large fields kept in the object store, and what each tenant stores there."""
