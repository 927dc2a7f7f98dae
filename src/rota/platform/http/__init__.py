"""HTTP: the layer around all routes, strict request bodies, and the error envelope."""
