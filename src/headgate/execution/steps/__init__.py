"""How each kind of step is executed: one module a kind, each with one function that takes the step and its context."""
