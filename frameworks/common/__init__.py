"""What frameworks share: attempts, blame, locality, commits.  Pure; imports the SDK only."""
