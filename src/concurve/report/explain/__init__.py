"""What limits each cell of a run: on the terminal, as JSON, as a section and as a chart."""
