"""The router: sends each request to the cell that has its account."""
