"""A command that programs take for Hadoop's `hadoop`: `jar` (streaming), `fs` and `version`.

Programs like mrjob start it and read what it prints, so its words, columns and exit codes
are Hadoop's.  `main.py` is the command, `home.py` makes a directory that looks like
$HADOOP_HOME.
"""
