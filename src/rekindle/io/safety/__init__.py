"""Files written whole or not at all, locks, and files that cannot be trusted."""
