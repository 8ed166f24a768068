"""Consumer groups: who is in, who reads what, and how far they have read. Machines without I/O."""
