"""Rota: hand work to named AI agents and stay in charge of it."""

__version__ = "0.1.0"
