"""A fit as a table on the terminal, as JSON, and as a chart."""
