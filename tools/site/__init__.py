"""Builds the documentation site, or serves it while pages are written.

python -m tools.site build
python -m tools.site serve
"""
