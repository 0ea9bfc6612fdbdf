"""The master: offers the free resources of agents to frameworks."""
