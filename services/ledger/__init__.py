"""The ledger service: chips, results and ratings, all of it derived from the tables' logs."""
