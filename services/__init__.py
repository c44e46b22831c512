"""Everything that runs: the rules and the game (pure), and the services around them."""
