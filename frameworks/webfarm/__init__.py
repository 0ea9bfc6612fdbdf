"""An elastic web farm: a balancer in front of web servers that run as tasks."""
