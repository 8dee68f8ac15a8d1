"""Watches a model while it runs, from outside: products, modules, gradients; and restores it."""
