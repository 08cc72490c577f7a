"""Audits: attempts to refute a privacy claim, exactly where the output space is finite, statistically otherwise."""
