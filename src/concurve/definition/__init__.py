"""Studies and campaigns as data, and the ways to write them: files, folders, a command line."""
