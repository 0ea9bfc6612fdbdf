"""What runs over the text: the same programs for everybody who can run programs."""
