"""Compositions of mechanisms that charge a ledger as they run."""
