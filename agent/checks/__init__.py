"""Probes of tasks, carried out: commands in their containers, HTTP and TCP from the agent."""
