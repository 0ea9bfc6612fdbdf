"""What contenders run.  They need numpy and their own engine only, write what they have found
as JSON into the file `--out`, and count time from when their engine is there."""
