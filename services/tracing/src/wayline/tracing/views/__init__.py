"""What tables hold, shown as answers: rows as contract values, spans as a tree."""
