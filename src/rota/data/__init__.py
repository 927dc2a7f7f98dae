"""The data of an account: how long it is kept, how it is exported, and how it is erased."""
