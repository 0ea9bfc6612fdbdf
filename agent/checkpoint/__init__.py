"""What the agent keeps on disk so that its successor can go on."""
