"""Files written whole, JSON of declared types, and pickles that call nothing."""
