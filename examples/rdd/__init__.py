"""Programs on data sets that stay in memory; each runs with `mesos-py rdd submit` as it is."""
