"""One run of the guard or of the nightly reconciliation, in the database.

`runs` opens and closes it, `staged` keeps what is compared, `differences` compares, `findings` keeps what was found.
"""
