"""Claims as users state them, and the mechanisms they are about: input for the command line, not code of the
product.
"""
