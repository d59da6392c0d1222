"""The books: what must hold about orders, stock, points, credit and money, as queries that find what does not.

`own` reads our tables at one instant; `settled` holds closed orders against the gateway's and the courier's books.
"""
