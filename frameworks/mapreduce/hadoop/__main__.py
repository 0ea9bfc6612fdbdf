"""`python -m frameworks.mapreduce.hadoop`."""

from frameworks.mapreduce.hadoop.main import main

main()
