"""`make demo`: one order of each kind, side by side on a shop of its own, and what became of them."""
