"""Word count, combine and reduce: the sum for each of the words, which come in order."""

import sys

write = sys.stdout.buffer.write
last, total = b"", 0
for line in sys.stdin.buffer:
    word, _, count = line.partition(b"\t")
    if word != last:
        if total:
            write(b"%s\t%d\n" % (last, total))
        last, total = word, 0
    total += int(count)
if total:
    write(b"%s\t%d\n" % (last, total))
