"""`make drill`: a shop under scripted evil while orders of every kind stream in; afterwards everybody's books."""
