"""Attendants: roles of a trial that provide a server or a volume, which knows nothing of trials.

The trial runner knows a role as a command line, a report channel, and SIGTERM at the end. A real
server or a block device under an I/O scheduler is no such program. An *attendant* is a small
process between the two: it starts the server or makes the volume, reports ``ready``, watches it,
and removes it at SIGTERM. The server or volume does not outlive its attendant, however that ends.

- ``attendant`` has the common part: their name in records, errors, signals, exit codes.
- ``servers`` are real servers, each in a new folder, on a port of loopback.
- ``volumes`` are new file systems under an I/O scheduler.
"""
