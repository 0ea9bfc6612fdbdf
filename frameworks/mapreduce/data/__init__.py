"""What records go through: splits, formats, partitions, sorting, shuffle, output."""
