"""Word count, map: each word of each line, and a one."""

import re
import sys

words = re.compile(rb"[\w']+").findall
write = sys.stdout.buffer.write
for line in sys.stdin.buffer:
    write(b"".join([word + b"\t1\n" for word in words(line)]))
