"""The two variants of the service."""

from rota.variants.a import VARIANT_A
from rota.variants.b import VARIANT_B
from rota.variants.variant import Variant

VARIANTS: dict[str, Variant] = {"a": VARIANT_A, "b": VARIANT_B}
