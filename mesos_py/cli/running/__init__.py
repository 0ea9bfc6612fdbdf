"""What `mesos-py run` is made of: a pure job, and what moves its bytes."""
