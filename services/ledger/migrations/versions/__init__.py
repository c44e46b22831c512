"""One file a change of the tables, each naming the one before it; none is ever changed after a release."""
