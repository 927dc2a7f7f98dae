"""Who there is: users, the accounts that own everything else, and members of companies."""
