"""`make bench`: what a shop on this machine does with many orders at once, and what each of them costs."""
