"""One vocabulary of names, and one reading of what rows, states, results and traces hold under them."""
