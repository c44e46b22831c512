"""What each kind of event does to a table; ``evolve`` calls these one event at a time. One module a phase."""
