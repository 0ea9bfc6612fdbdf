"""The pure part of the engine: stages, tasks, where they go, and what a loss costs."""
