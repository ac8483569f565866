"""Audits as pages, and figures."""
