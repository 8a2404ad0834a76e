"""Time of fusedops' operators beside torch's own and what the device's memory allows, each checked in the same run."""
