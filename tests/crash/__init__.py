"""Kills, power loss, full and failing disks: what was acknowledged is still there."""
