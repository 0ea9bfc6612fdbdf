"""What containers store in their sandboxes, and the quota on it."""
