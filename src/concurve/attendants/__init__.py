"""Attendants: roles of a trial that provide something which knows nothing of trials.

The trial runner knows a role as a command line, a report channel, and SIGTERM at the end. A real
server or a block device under an I/O scheduler is no such program. An *attendant* is a small
process between the two: it makes the thing, reports ``ready``, watches it, and takes it back at
SIGTERM. What it made does not outlive it, however it ends.

- ``attendant`` has what all attendants do: their name in records, errors, signals, exit codes.
- ``servers`` are real servers, each in a new folder, on a port of loopback.
- ``volumes`` are new file systems under an I/O scheduler.
"""
