"""Every model of the API."""

from rota_sdk._generated.models import *  # noqa: F403
