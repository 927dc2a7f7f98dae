"""HTTP manners: the edge every request passes, strict bodies, the error envelope."""
