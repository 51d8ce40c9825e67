"""The program that runs the cells of a notebook inside its sandbox. It does not import the rest of Headgate, and its
outputs are untrusted.
"""
