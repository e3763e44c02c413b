"""How search behaves at a size: recall under filters, its time beside the bare SQL, and how fast documents come in."""
