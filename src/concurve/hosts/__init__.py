"""Trials over several hosts: an engine that runs the roles of a trial where they belong, and makes
one record of what was measured on each host.

On each host an agent (:mod:`~concurve.hosts.agent`) starts the runner. Connections to the agents
are a seam (:mod:`~concurve.hosts.connection`): Ray places and watches what carries them
(:mod:`~concurve.hosts.ray_cluster`). Nothing here imports Ray before it is asked for.
"""
