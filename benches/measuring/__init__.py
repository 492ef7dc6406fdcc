"""What the benches share: figures, interleaved runs, the other tools, estimates, and the table."""
