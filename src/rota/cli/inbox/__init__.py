"""`rota inbox`: what waits for a person, reviewed with the keyboard."""
