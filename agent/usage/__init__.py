"""What containers use: measured when somebody asks, for the operator API and Prometheus."""
