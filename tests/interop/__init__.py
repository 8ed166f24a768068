"""Real clients over real sockets: what they write, they read; what they ask, they get."""
