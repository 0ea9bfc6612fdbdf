"""The RDD engine beside MapReduce, PySpark, Dask and plain Python (`bench.rdd.bench`).

Nothing is imported here: PySpark's Python runs `bench.rdd.programs` and need not have what
the bench needs.
"""
