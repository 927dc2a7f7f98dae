"""Credits: the ledger, what runs have on hold, balances, top-ups and usage."""
