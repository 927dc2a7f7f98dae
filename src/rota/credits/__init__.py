"""Credits: the ledger, holds, balances, top-ups and usage."""
