"""Record batches, format 2: the unit in which records travel and lie in a log.

    batch     the 61 bytes of header, read and placed   check     what a producer's batch must be
    record    the records, read one by one              rules     what a topic wants of it
    build     records into a batch                      deep      the walk over all records
    control   the markers that end transactions         rewrite   another codec than the producer's
    compact   a batch with fewer records                compress  gzip, snappy, lz4, zstd
    varint    the numbers inside records                errors    BadBatch

It does no I/O and knows no partition: offsets, epochs and the time are given to it.
"""
