"""The one error of volumes."""


class VolumeError(Exception):
    """A volume cannot be made or taken back; the text says why, and what to try."""
