"""How much each framework is offered: pure, pluggable."""
